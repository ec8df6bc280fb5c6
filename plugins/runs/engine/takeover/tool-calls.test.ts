// How a driver continues the tool calls of another. Journals are made by hand, end where a process
// may die, and are then driven over the real server.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, typesOf } from '../../../../test/support/engine.ts'
import { resultsIn } from '../../../../test/support/scripted-model.ts'
import { ToolInvocations } from '../../tools/audit-log.ts'
import type { Run } from '../../collections.ts'
import { event, leaseTaken } from '../../journal/records.ts'
import { keyOf } from '../../steps/tool-calls/tool-call-info.ts'
import { accepted, began, startTakeover, wanted } from '../../../../test/support/runs/takeover.ts'

const { engine, bodies, script, away, goOn } = await startTakeover()

const ended = (name: string, id = 'c1') =>
  event('tool_result', {
    step: 0,
    call_id: id,
    name,
    status: 'ok',
    content: 'said before',
    truncated: false,
    artifact_id: null,
  })

const audited = async (run: Run) =>
  (await engine.storage.find(ToolInvocations, { where: { orgId: run.orgId, runId: run.id } })).items

test('a body that acts and may have begun is not run again; its outcome is unknown', async () => {
  const id = crypto.randomUUID()
  const key = keyOf(id, 0, 'c1')
  const { user_id: userId, org_id: orgId } = engine.who
  await engine.storage.insert(ToolInvocations, {
    id: key,
    orgId,
    userId,
    sessionId: id,
    runId: id,
    step: 0,
    tool: 'pays',
    effect: 'once',
    status: 'begun',
    startedAt: 1,
  })
  const { run, list, results, asked } = await goOn(
    [leaseTaken(1), wanted('pays'), accepted, began('pays')],
    { id },
  )
  assert.equal(
    [bodies, results.map(([status]) => status), typesOf(list)],
    [[], ['unknown'], ['tool_result', 'token', 'usage', 'done']],
  )
  assert.match(
    resultsIn(asked[0]!)[0]!,
    /^\[unknown\] It is not known whether this call was carried out/,
  )
  assert.equal(
    (await audited(run)).map(({ id: its, tool: name, status, startedAt, endedAt }) => [
      its,
      name,
      status,
      startedAt,
      endedAt! > 1,
    ]),
    [[key, 'pays', 'unknown', 1, true]],
  )
})

test("a tool that can find out is asked under the call's key, and its word counts", async () => {
  for (const [word, expected, ran] of [
    [{ content: 'paid at noon' }, ['ok', 'paid at noon'], 0],
    ['not done', ['ok', 'knows said so'], 1],
    [undefined, ['unknown', /not known/], 0],
    [new Error('no answer'), ['unknown', /not known/], 0],
  ] as const) {
    script.probed = () => {
      if (word instanceof Error) throw word
      return word
    }
    const {
      results: [[status, content] = []],
    } = await goOn([leaseTaken(1), wanted('knows'), accepted, began('knows')])
    assert.is(status, expected[0])
    assert.match(String(content), expected[1])
    assert.is(bodies.length, ran)
  }
})

test('what the storage cut short goes on later, if that cannot happen twice', async () => {
  for (const [name, word, expected, ran] of [
    ['retries', undefined, ['ok', 'retries said so'], 2],
    ['probes', { content: 'it was done' }, ['ok', 'it was done'], 1],
    ['probes', 'not done', ['ok', 'probes said so'], 2],
    ['probes', undefined, ['unknown', /not known/], 1],
    ['trips', undefined, ['failed', /is away/], 1],
  ] as const) {
    script.probed = () => word
    const {
      results: [[status, content] = []],
    } = await goOn([leaseTaken(1), wanted(name), accepted])
    assert.is(status, expected[0], name)
    assert.match(String(content), expected[1])
    assert.is(bodies.length, ran, name)
  }
})

test('a call that the storage cuts short again and again ends as unknown', async () => {
  for (const [name, times, expected, ran] of [
    ['retries', 3, ['ok', 'retries said so'], 4],
    ['retries', 99, ['failed', /is away/], 9],
  ] as const) {
    script.falls = times
    const { results } = await goOn([leaseTaken(1), wanted(name), accepted])
    assert.is(results[0]![0], expected[0])
    assert.match(String(results[0]![1]), expected[1])
    assert.is(bodies.length, ran)
  }
  script.falls = 1
  script.awayCode = 'STOPPING'
  const { results: stopping } = await goOn([leaseTaken(1), wanted('retries'), accepted])
  assert.equal(stopping, [['ok', 'retries said so']], 'a stop is no outcome')
  script.awayCode = 'UNAVAILABLE'
  for (const [records, times, expected] of [
    [[began('knows')], 2, ['ok', 'paid at noon']],
    [[began('knows')], 99, ['unknown', /not known/]],
    [[], 2, ['ok', 'paid at noon']],
  ] as const) {
    let asked = 0
    script.probed = () => {
      if (asked++ < times) throw away()
      return { content: 'paid at noon' }
    }
    const {
      results: [[status, content] = []],
    } = await goOn([
      leaseTaken(1),
      wanted(records.length > 0 ? 'knows' : 'probes'),
      accepted,
      ...records,
    ])
    assert.is(status, expected[0])
    assert.match(String(content), expected[1])
    assert.is(asked, times === 2 ? 3 : 9)
  }
})

test('a body runs again under the same key; one without effect simply runs again', async () => {
  for (const name of ['keyed', 'looks']) {
    const { run, results } = await goOn([leaseTaken(1), wanted(name), accepted, began(name)])
    assert.equal(
      [bodies, results],
      [[{ name, key: keyOf(run.id, 0, 'c1') }], [['ok', `${name} said so`]]],
    )
  }
})

test('of several calls each goes on from where it stood', async () => {
  const { list, asked } = await goOn([
    leaseTaken(1),
    wanted('pays', 'c1'),
    wanted('looks', 'c2'),
    wanted('pays', 'c3'),
    accepted,
    began('pays', 'c1'),
    ended('pays', 'c1'),
    began('looks', 'c2'),
  ])
  assert.equal(
    bodies.map(({ name }) => name),
    ['looks', 'pays'],
  )
  assert.equal(
    dataOf(list, 'tool_call').map(({ call_id: id }) => id),
    ['c3'],
    'what was announced is not announced again',
  )
  assert.equal(resultsIn(asked[0]!), ['said before', 'looks said so', 'pays said so'])
})

test('a tool that is gone: what may have begun is unknown, what had not begun failed', async () => {
  const { results } = await goOn([
    leaseTaken(1),
    wanted('gone', 'c1'),
    wanted('gone', 'c2'),
    accepted,
    began('gone', 'c1'),
  ])
  assert.equal(
    results.map(([status]) => status),
    ['unknown', 'failed'],
  )
})

test.after(endEngines)
test.run()
