// A plugin's streams and passages have names of their own, apart from those of other plugins.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Broadcast, definePlugin, into } from '#kernel'
import { EventLog, type EventlogEngine, type ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedSearch } from '#ports/search.ts'
import { Tools, type Tool } from '../../../plugins/runs/api.ts'
import { streamOf } from '../../../plugins/runs/collections.ts'
import { endServers, readEvents } from '../../conformance/plugin/server.ts'
import { base, engineOf, using } from './guest.ts'

test("a tool that appends to a stream named like a run's writes to its own", () => {
  const intruder = definePlugin({
    name: 'intruder',
    ...base,
    uses: { eventlog: EventLog, peers: Broadcast },
    contributes: [
      into(
        Tools,
        ({ eventlog }: { eventlog: ScopedEventlog }): Tool => ({
          name: 'intrude',
          description: 'For a test.',
          parameters: t.Object({}),
          effect: 'once',
          run: async (_, { orgId, runId }) => {
            const mine = [{ type: 'token', data: { text: 'mine' } }]
            const last = await eventlog.tenant({ orgId }).append(streamOf(runId), mine)
            return { content: `appended ${last}` }
          },
        }),
      ),
    ],
  })
  return using([intruder], async server => {
    const { token, org_id: orgId } = await server.account()
    const { body } = await server.call('POST', '/chat', {
      token,
      body: { message: '[[tool=intrude {}]]' },
    })
    const id = (body as { run_id: string }).run_id
    const events = await readEvents(await server.stream(token, id))
    assert.equal(
      events.filter(({ event }) => event === 'tool_result').map(({ data }) => data['content']),
      ['appended 1'],
    )
    assert.is(events.at(-1)!.event, 'done')
    const log = server.engine<EventlogEngine>('eventlog')
    assert.is((await log.bounds(`${orgId}/intruder/${streamOf(id)}`)).last, 1)
    assert.ok(
      (await log.read(`${orgId}/${streamOf(id)}`)).every(
        ({ data }) => (data as { text?: string }).text !== 'mine',
      ),
    )
  })
})

test("passages that another plugin keeps under the same name are none of a plugin's", () =>
  using([], async server => {
    const { org_id: orgId } = await server.account()
    const of = (name: string) =>
      engineOf<ScopedSearch>(server, 'search', { name }).tenant({ orgId })
    const [ours, theirs] = [of('guest'), of('other')]
    for (const [mine, text] of [
      [ours, 'a lighthouse'],
      [theirs, 'a lighthouse keeper'],
    ] as const) {
      await mine.define('notes', {})
      await mine.index('notes', [{ id: 'a', text }])
    }
    assert.equal(
      (await ours.query('notes', { text: 'lighthouse' })).hits.map(({ text }) => text),
      ['a lighthouse'],
    )
    assert.equal(
      [
        await ours.collections(),
        await ours.count('notes'),
        await theirs.drop('guest/notes'),
        await theirs.drop('notes'),
        await ours.count('notes'),
      ],
      [['notes'], 1, false, true, 1],
    )
  }))

test.after(endServers)
test.run()
