// How a driver continues a run of another. Journals are made by hand, end where a process may die,
// and are then driven over the real server.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import type { NewEvent } from '#ports/eventlog.ts'
import {
  dataOf,
  endEngines,
  saidIn,
  startEngine,
  typesOf,
  until,
} from '../../../test/support/engine.ts'
import { resultsIn, says } from '../../../test/support/scripted-model.ts'
import type { Tool, ToolAnswer } from '../api.ts'
import { ToolInvocations } from '../tools/audit-log.ts'
import type { Verified } from '../verify/verify-command.ts'
import type { Run } from '../collections.ts'
import {
  checkpointed,
  event,
  modelCallAccepted,
  leaseTaken,
  toolWhole,
} from '../journal/records.ts'
import { keyOf } from '../steps/tool-calls/tool-call-info.ts'

const parameters = { type: 'object' } as const
const bodies: { name: string; key: string }[] = []
let probed: () => ToolAnswer | 'not done' | undefined = () => undefined
const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: 'For a test.',
  parameters,
  run: (_, { key }) => {
    bodies.push({ name, key })
    return { content: `${name} said so` }
  },
  ...more,
})
/** How many bodies a storage that is away cuts short. */
let falls = 1
let awayCode: 'UNAVAILABLE' | 'STOPPING' = 'UNAVAILABLE'
const away = () =>
  awayCode === 'STOPPING'
    ? fault('STOPPING')
    : fault('UNAVAILABLE', { what: 'The database', why: 'it is away' })
const stumbling = (name: string, more: Partial<Tool>): Tool =>
  tool(name, {
    ...more,
    run: (_, { key }) => {
      bodies.push({ name, key })
      if (bodies.length <= falls) throw away()
      return { content: `${name} said so` }
    },
  })
const engine = await startEngine(request => says(`heard: ${resultsIn(request).join(' | ')}`), {
  tools: [
    tool('pays'),
    tool('asks', { approval: true }),
    tool('knows', { probe: async () => probed() }),
    tool('keyed', { effect: 'keyed' }),
    tool('looks', { effect: 'none' }),
    stumbling('trips', {}),
    stumbling('probes', { probe: async () => probed() }),
    stumbling('retries', { effect: 'keyed' }),
  ],
  env: { RUNS_TAKES_MAX: '3' },
  model: { supports: { resume: true } },
})
const usage = { finish: 'tool_calls', input_tokens: 10, output_tokens: 10 }
const wanted = (name: string, id = 'c1') =>
  toolWhole({ step: 0, attempt: 1, call: { id, name, arguments: {} } })
const began = (name: string, id = 'c1') =>
  event('tool_call', { step: 0, call_id: id, name, arguments: {} })
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
const accepted = modelCallAccepted({ step: 0, attempt: 1, ...usage })
/** Returns how the next driver continued the run. */
const goOn = async (
  records: readonly NewEvent[],
  change: Parameters<typeof engine.left>[1] = {},
) => {
  bodies.length = 0
  const before = engine.model.requests.length
  const run = await engine.left(records, change)
  const list = (await engine.read(run.id)).filter(({ id }) => id > records.length)
  await engine.closed(run.id)
  return {
    run,
    list,
    asked: engine.model.requests.slice(before),
    results: dataOf(list, 'tool_result').map(({ status, content }) => [status, content]),
  }
}
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
    probed = () => {
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
    probed = () => word
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
    falls = times
    const { results } = await goOn([leaseTaken(1), wanted(name), accepted])
    assert.is(results[0]![0], expected[0])
    assert.match(String(results[0]![1]), expected[1])
    assert.is(bodies.length, ran)
  }
  falls = 1
  awayCode = 'STOPPING'
  const { results: stopping } = await goOn([leaseTaken(1), wanted('retries'), accepted])
  assert.equal(stopping, [['ok', 'retries said so']], 'a stop is no outcome')
  awayCode = 'UNAVAILABLE'
  for (const [records, times, expected] of [
    [[began('knows')], 2, ['ok', 'paid at noon']],
    [[began('knows')], 99, ['unknown', /not known/]],
    [[], 2, ['ok', 'paid at noon']],
  ] as const) {
    let asked = 0
    probed = () => {
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

const question = (number: number) =>
  event('approval', {
    question_id: '00000000-0000-4000-8000-00000000000a',
    step: 0,
    call_id: 'c1',
    name: 'asks',
    action: 'asks',
    arguments: {},
    expires_at: new Date(Date.now() + 600_000).toISOString(),
    number,
  })
test('an answer not yet in the journal is heard; the question is not asked again', async () => {
  for (const [answer, expected, ran] of [
    [true, 'ok', 1],
    [false, 'declined', 0],
  ] as const) {
    const { list, results } = await goOn([leaseTaken(1), wanted('asks'), accepted, question(0)], {
      replies: 1,
      reply: { number: 0, status: 'answered', answer },
    })
    assert.equal(
      [
        dataOf(list, 'choice_answer').map(({ status, answer: given }) => [status, given]),
        dataOf(list, 'approval'),
        results[0]![0],
        bodies.length,
      ],
      [[['answered', answer]], [], expected, ran],
    )
  }
})

test('a question whose driver died before it could let go waits for its answer', async () => {
  const run = await engine.left([leaseTaken(1), wanted('asks'), accepted, question(0)])
  await until('it waits', async () => (await engine.run(run.id)).status === 'waiting')
  assert.is(
    (
      await engine.call('POST', `/runs/${run.id}/respond`, {
        token: engine.who.token,
        body: { question_id: '00000000-0000-4000-8000-00000000000a', answer: true },
      })
    ).status,
    200,
  )
  const list = await engine.read(run.id)
  assert.equal(
    [dataOf(list, 'approval').length, dataOf(list, 'tool_result').map(({ status }) => status)],
    [1, ['ok']],
  )
})

test('an approved body that may have begun is neither run nor asked for again', async () => {
  const heard = event('choice_answer', {
    question_id: '00000000-0000-4000-8000-00000000000a',
    step: 0,
    call_id: 'c1',
    status: 'answered',
    answer: true,
  })
  const { list, results } = await goOn(
    [leaseTaken(1), wanted('asks'), accepted, question(0), heard, began('asks')],
    { replies: 1 },
  )
  assert.equal(
    [bodies, results.map(([status]) => status), dataOf(list, 'approval')],
    [[], ['unknown'], []],
  )
})

test("a dead process's answer is resumed at the provider, and readers are told", async () => {
  const { list, asked } = await goOn([
    leaseTaken(1),
    event('token', { text: 'one ', step: 0, attempt: 1 }),
    checkpointed({ step: 0, attempt: 1, response: 'r', at: 1 }),
    event('token', { text: 'hea', step: 0, attempt: 1 }),
  ])
  assert.equal(dataOf(list, 'superseded'), [
    { step: 0, attempt: 1, keep: 7, reason: 'interrupted' },
  ])
  assert.equal(
    asked.map(({ resume }) => resume),
    [{ response: 'r', at: 1 }],
  )
  assert.equal(
    dataOf(list, 'token').map(({ attempt, text }) => [attempt, text]),
    [[2, 'rd: ']],
    'what was shown is not shown again',
  )
})

test('nothing had come: the call is made as if for the first time', async () => {
  const { list, asked } = await goOn([leaseTaken(1)])
  assert.equal(
    [typesOf(list), asked.length, dataOf(list, 'token')[0]!['attempt']],
    [['token', 'usage', 'done'], 1, 1],
  )
})

test('an accepted answer is not asked for again', async () => {
  const { list, asked, run } = await goOn([
    leaseTaken(1),
    event('token', { text: 'all of it', step: 0, attempt: 1 }),
    modelCallAccepted({ step: 0, attempt: 1, finish: 'stop', input_tokens: 1, output_tokens: 3 }),
  ])
  assert.equal(
    [typesOf(list), asked, (await engine.run(run.id)).answer],
    [['usage', 'done'], [], 'all of it'],
  )
})

const drivers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => leaseTaken(from + i))
const said = event('token', { text: 'one ', step: 0, attempt: 1 })
test('a run that so many drivers took over in vain is given up, and costs nothing', async () => {
  const { balance } = await engine.balance()
  const { list, asked } = await goOn(drivers(1, 3), { epoch: 3 })
  assert.equal(
    [
      dataOf(list, 'error').map(({ code }) => code),
      dataOf(list, 'usage').map(({ credits }) => credits),
      asked,
    ],
    [['RUN_STUCK'], [0], []],
  )
  assert.match(String(list.at(-1)!.data['detail']), /no progress in 4 starts/)
  assert.equal(await engine.balance(), { balance, held: 0, available: balance })
})

test('one driver fewer, or anything new in between, and it goes on', async () => {
  for (const records of [drivers(1, 2), [...drivers(1, 3), said, ...drivers(4, 5)]]) {
    const { list } = await goOn(records, { epoch: records.length })
    assert.is(list.at(-1)!.event, 'done', JSON.stringify(list.at(-1)))
  }
  const { list } = await goOn([...drivers(1, 3), said, ...drivers(4, 6)], { epoch: 6 })
  assert.is(list.at(-1)!.data['code'], 'RUN_STUCK', 'the count begins anew; it does not end')
})

test('whatever its drivers left, what readers are told adds up', async () => {
  const { list } = await goOn([leaseTaken(1), said, leaseTaken(2)], { epoch: 2 })
  const verified = (await engine.kernel.commands().get('verify')!.run({})) as Verified
  assert.is(saidIn(list), 'heard: ')
  assert.equal(verified.told, [])
})

test.after(endEngines)
test.run()
