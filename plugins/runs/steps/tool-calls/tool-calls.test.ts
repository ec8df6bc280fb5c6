// Tool calls over the API: in parallel or in order, within their time or not, cancelled, kept, and
// in the audit log.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import {
  dataOf,
  endEngines,
  type Engine,
  lasting,
  startEngine,
  until,
} from '../../../../test/support/engine.ts'
import {
  called,
  calls,
  door,
  lastWords,
  offered,
  resultsIn,
  says,
  type Play,
} from '../../../../test/support/scripted-model.ts'
import type { Agent, Tool } from '../../api.ts'
import { ToolInvocations } from '../../tools/audit-log.ts'

const log: string[] = []
const doors = new Map<string, ReturnType<typeof door>>()
const doorOf = (name: string) => doors.get(name) ?? doors.set(name, door()).get(name)!
const Named = t.Object(
  { text: t.String(), polite: t.Boolean({ default: true }) },
  { additionalProperties: false },
)
/** A tool whose body begins, waits for its door, and ends. */
const held = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: 'For a test.',
  parameters: Named,
  run: async args => {
    const { text } = args as { text: string }
    log.push(`+${text}`)
    await doorOf(text).passed
    log.push(`-${text}`)
    return { content: `${name} ${text}` }
  },
  ...more,
})
const quick = (name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool => ({
  name,
  description: 'For a test.',
  parameters: Named,
  run,
  ...more,
})
const untilAborted: Tool['run'] = (_, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const tools: readonly Tool[] = [
  held('reads', { effect: 'none' }),
  held('sends'),
  held('shy', { effect: 'none', parallel: false }),
  held('bold', { parallel: true }),
  quick('late', untilAborted, { effect: 'keyed', timeoutMs: 30 }),
  quick('echo', args => ({ content: JSON.stringify(args) }), { effect: 'none' }),
  quick('no', () => ({ content: 'it says no', isError: true })),
  quick('fault', () => {
    throw fault('NOT_FOUND', { what: 'book' })
  }),
  quick('asks', () => ({ content: 'never' }), { approval: true }),
  quick('exact', () => ({ content: 'x'.repeat(1000) }), { effect: 'none' }),
  quick('over', () => ({ content: 'x'.repeat(1001) }), { effect: 'none' }),
]
const agents: readonly Agent[] = [
  { key: 'reader', name: 'Reader', instruction: 'Read.', tools: ['reads', 'echo'] },
]
/** The user's message lists the calls, one a line: `name text`. */
const play: Play = request =>
  resultsIn(request).length > 0
    ? says('answered')
    : calls(
        ...lastWords(request)
          .split('\n')
          .map((line, i) =>
            called(`c${i}`, line.split(' ')[0]!, { text: line.split(' ')[1] ?? 'x' }),
          ),
      )
const engine = await startEngine(play, { tools, agents, env: { RUNS_RESULT_CHARS_MAX: '1000' } })
const fresh = () => {
  log.length = 0
  doors.clear()
}
const results = async (id: string, by = engine) =>
  dataOf(await by.read(id), 'tool_result').map(({ call_id: call, status, content }) => [
    call,
    status,
    content,
  ])
const audited = async (runId: string, by: Engine = engine) =>
  (await by.storage.find(ToolInvocations, { where: { runId } })).items
const began = (...names: string[]) =>
  until(`the beginning of ${names.join()}`, () => names.every(name => log.includes(`+${name}`)))

test('calls without effect run side by side; each result is told as it comes', async () => {
  fresh()
  const { run_id: id } = await engine.chat('reads a\nreads b\nreads c')
  await began('a', 'b', 'c')
  doorOf('b').open()
  await engine.read(id, ({ event }) => event === 'tool_result')
  doorOf('a').open()
  doorOf('c').open()
  const told = await results(id)
  assert.equal(
    [log.slice(0, 4), told[0]],
    [
      ['+a', '+b', '+c', '-b'],
      ['c1', 'ok', 'reads b'],
    ],
  )
  // The model reads the results in the order of its calls.
  assert.equal(resultsIn(engine.model.requests.at(-1)!), ['reads a', 'reads b', 'reads c'])
})

test('what acts on the world runs alone and in order, unless it says otherwise', async () => {
  for (const [message, order] of [
    ['sends a\nsends b', ['+a', '-a', '+b', '-b']],
    ['shy a\nshy b', ['+a', '-a', '+b', '-b']],
    ['bold a\nbold b', ['+a', '+b', '-a', '-b']],
    ['reads a\nreads b\nsends c\nreads d', ['+a', '+b', '-a', '-b', '+c', '-c', '+d', '-d']],
  ] as const) {
    fresh()
    const { run_id: id } = await engine.chat(message)
    // Each door opens once all calls that may begin before it have begun.
    for (const [i, step] of order.entries())
      await (step.startsWith('+')
        ? began(step.slice(1))
        : until(step, () => {
            if (log.length === i) doorOf(step.slice(1)).open()
            return log.length > i
          }))
    assert.equal((await results(id)).length, message.split('\n').length)
    assert.equal(log, order, message)
  }
})

test('a late tool under a key has failed; faults, refusals and defaults come through', async () => {
  fresh()
  const { run_id: id } = await engine.chat('late\nno\nfault\necho hi')
  assert.equal(await results(id), [
    ['c0', 'failed', 'The tool took longer than 30 ms.'],
    ['c1', 'failed', 'it says no'],
    ['c2', 'failed', fault('NOT_FOUND', { what: 'book' }).message],
    ['c3', 'ok', '{"text":"hi","polite":true}'],
  ])
  assert.equal(resultsIn(engine.model.requests.at(-1)!)[1], '[failed] it says no')
})

test('an agent offers and reaches its own tools alone', async () => {
  fresh()
  const { run_id: id } = await engine.chat('echo hi\nsends a', { app_name: 'reader' })
  assert.equal(
    (await results(id)).map(([, status, content]) => [status, content]),
    [
      ['ok', '{"text":"hi","polite":true}'],
      ['failed', 'There is no tool "sends".'],
    ],
  )
  assert.equal([offered(engine.model.requests.at(-2)!).sort(), log], [['echo', 'reads'], []])
})

test('a run cancelled in a call ends at once; the outcome of what acts is unknown', async () => {
  for (const [name, status] of [
    ['sends', 'unknown'],
    ['reads', 'failed'],
  ] as const) {
    fresh()
    const asked = engine.model.requests.length
    const { run_id: id } = await engine.chat(`${name} a\nsends b`)
    await began('a')
    await engine.call('POST', `/runs/${id}/cancel`, { token: engine.who.token })
    const list = await engine.read(id)
    assert.equal(
      [
        list.at(-1)!.data['status'],
        dataOf(list, 'tool_result').map(one => [one['call_id'], one['status']]),
      ],
      ['cancelled', [['c0', status]]],
    )
    await engine.closed(id)
    assert.equal(
      [log, engine.model.requests.length - asked, (await audited(id)).map(one => one.status)],
      [['+a'], 1, [status]],
    )
    // The body was abandoned, but a stop would wait for it.
    doorOf('a').open()
    await until('its end', () => log.includes('-a'))
  }
})

test('the audit keeps each call, its user and its end, even without the conversation', async () => {
  fresh()
  const { run_id: id, session_id: sessionId } = await engine.chat('echo a\nno\nlate\nasks\nnobody')
  const { org_id: orgId, user_id: userId, token } = engine.who
  const question = (await engine.read(id, ({ event }) => event === 'approval')).at(-1)!.data[
    'question_id'
  ]
  const respond = () =>
    engine.call('POST', `/runs/${id}/respond`, {
      token,
      body: { question_id: question, answer: false },
    })
  assert.is((await respond()).status, 200)
  await engine.read(id)
  await engine.closed(id)
  const records = (await audited(id)).toSorted((a, b) => a.tool.localeCompare(b.tool))
  assert.equal(
    records.map(({ tool, effect, status, step }) => [tool, effect, status, step]),
    [
      ['asks', 'once', 'declined', 0],
      ['echo', 'none', 'ok', 0],
      ['late', 'keyed', 'failed', 0],
      ['no', 'once', 'failed', 0],
      ['nobody', 'none', 'failed', 0],
    ],
    'also what was declined, or is no tool',
  )
  for (const one of records)
    assert.equal(
      [one.orgId, one.userId, one.sessionId, one.runId, one.endedAt! >= one.startedAt],
      [orgId, userId, sessionId, id, true],
    )
  assert.is((await engine.call('DELETE', `/sessions/${sessionId}`, { token })).status, 204)
  assert.is((await audited(id)).length, 5)
})

test('a result of exactly the length that the model reads stays whole', async () => {
  const { run_id: id, session_id: sessionId } = await engine.chat('exact\nover')
  const list = await engine.read(id)
  const told = dataOf(list, 'tool_result')
  assert.equal(
    told.map(({ truncated, artifact_id: artifact, content }) => [
      truncated,
      artifact === null,
      String(content).length > 1000,
    ]),
    [
      [false, true, false],
      [true, false, true],
    ],
  )
  const { items } = (
    await engine.call('GET', `/sessions/${sessionId}/artifacts`, { token: engine.who.token })
  ).body as { items: { id: string }[] }
  assert.equal(
    items.map(one => one.id),
    [told[1]!['artifact_id']],
  )
})

test("a crash around the artifact or the call's word leaves one artifact, one record", async () => {
  for (const [lost, times] of [
    ['artifact', 2],
    ['tool_call', 2],
  ] as const) {
    const engines = lasting()
    let tried = 0
    const eventlog = {
      ...engines.eventlog,
      append: async (...[stream, events, options]: Parameters<typeof engines.eventlog.append>) => {
        if (events.some(({ type }) => type === lost) && tried++ === 0)
          throw fault('UNAVAILABLE', { what: 'The event log', why: 'for a test' })
        return engines.eventlog.append(stream, events, options)
      },
    }
    const second = await startEngine(play, {
      tools,
      env: { RUNS_RESULT_CHARS_MAX: '1000' },
      given: { storage: engines.storage, eventlog },
    })
    const { run_id: id, session_id: sessionId } = await second.chat('over')
    const [[, status, content] = []] = await results(id, second)
    const { items } = (
      await second.call('GET', `/sessions/${sessionId}/artifacts`, { token: second.who.token })
    ).body as { items: { id: string }[] }
    assert.equal(
      [tried, status, items.length, String(content).includes(items[0]!.id)],
      [times, 'ok', 1, true],
      lost,
    )
    await second.closed(id)
    assert.equal(
      (await audited(id, second)).map(one => one.status),
      ['ok'],
      'two tries of one call are one record',
    )
    await second.stop()
  }
})

test.after(endEngines)
test.run()
