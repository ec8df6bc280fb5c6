// Sessions over the API: listed, renamed, deleted, and remembered by later runs.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pause, startRuns, startOffline } from '../../../test/support/runs/server.ts'

const { server, chat, events, balanceOf } = await startRuns()

test('sessions are listed by latest use, renamed, and deleted with their contents', async () => {
  const who = await server.account(100)
  const ids: string[] = []
  for (const message of ['one', 'two', 'three']) {
    const { run } = await chat(who, { message })
    await events(who, run.run_id)
    ids.unshift(run.session_id)
  }
  const page = (await server.call('GET', '/sessions?limit=2', { token: who.token })).body as {
    items: { id: string; title: string }[]
    next_cursor: string
  }
  assert.equal(
    page.items.map(({ title }) => title),
    ['three', 'two'],
  )
  const rest = (
    await server.call('GET', `/sessions?limit=2&cursor=${encodeURIComponent(page.next_cursor)}`, {
      token: who.token,
    })
  ).body as typeof page
  assert.equal([rest.items.map(({ title }) => title), rest.next_cursor], [['one'], undefined])
  const renamed = await server.call('PATCH', `/sessions/${ids[0]}`, {
    token: who.token,
    body: { title: 'A better name' },
  })
  assert.is((renamed.body as { title: string }).title, 'A better name')
  const { runs } = (await server.call('GET', `/sessions/${ids[0]}`, { token: who.token })).body as {
    runs: { run_id: string }[]
  }
  assert.is((await server.call('DELETE', `/sessions/${ids[0]}`, { token: who.token })).status, 204)
  for (const path of [
    `/sessions/${ids[0]}`,
    `/sessions/${ids[0]}/messages`,
    `/runs/${runs[0]!.run_id}/events`,
  ])
    assert.is((await server.call('GET', path, { token: who.token })).status, 404)
  const busy = await chat(who, { message: '[[stall_after=0]]' })
  assert.is(
    (await server.call('DELETE', `/sessions/${busy.run.session_id}`, { token: who.token })).status,
    409,
  )
})

test('deleting a conversation with a paused queue returns the credits of its runs', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[fail_after=0]] [[interval_ms=30]]' })
  const session_id = first.run.session_id
  const second = await chat(who, { message: 'behind', session_id })
  await events(who, first.run.run_id)
  const status = async () =>
    (
      (await server.call('GET', `/sessions/${session_id}`, { token: who.token })).body as {
        status: string
      }
    ).status
  for (let tries = 0; (await status()) !== 'paused'; tries++) {
    assert.ok(tries < 200, 'it is never paused')
    await pause(10)
  }
  assert.ok((await balanceOf(who)).held > 0)
  assert.is(
    (await server.call('DELETE', `/sessions/${session_id}`, { token: who.token })).status,
    204,
  )
  assert.is(
    (await server.call('GET', `/runs/${second.run.run_id}/events`, { token: who.token })).status,
    404,
  )
  assert.equal(await balanceOf(who), { balance: 100, held: 0, available: 100 })
})

test('a later run in a session knows what was said before', async () => {
  const offline = await startOffline()
  const first = await offline.ask({ message: 'The lighthouse of Marabout was built in 1907.' })
  const second = await offline.ask({
    message: 'When was the lighthouse of Marabout built?',
    session_id: first.run.session_id,
  })
  assert.match(second.text, /1907/)
  await offline.server.stop()
})

test.after(() => server.stop())
test.run()
