// What a client learns of runs without following their events.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endEngines, startEngine, until } from '../../../test/support/engine.ts'
import { called, calls, door, resultsIn, says, text } from '../../../test/support/scripted-model.ts'
import { fault } from '#kernel'
import type { Tool } from '../api.ts'

type View = {
  run_id: string
  session_id: string
  status: string
  answer: string
  usage: { input_tokens: number; output_tokens: number; total_tokens: number } | null
  error: { code: string; detail: string } | null
  questions: { type: string; data: { question_id: string; question?: string } }[]
  artifacts: { id: string; filename: string; run_id: string }[]
  credits: number | null
  ended_at: string | null
}
type List = { items: View[]; next_cursor?: string }
const asking: Tool = {
  name: 'wipe',
  description: 'Removes things.',
  parameters: t.Object({}),
  approval: true,
  effect: 'once',
  run: () => ({ content: 'wiped' }),
}

async function start(...args: Parameters<typeof startEngine>) {
  const engine = await startEngine(...args)
  const { token } = engine.who
  const get = async <T>(path: string) => {
    const { status, body } = await engine.call('GET', path, { token })
    assert.is(status, 200, JSON.stringify(body))
    return body as T
  }
  return { ...engine, token, get, view: (id: string) => get<View>(`/runs/${id}`) }
}

test('a run that ended shows its answer, what it used and what it cost', async () => {
  const { chat, read, view } = await start(() => says('All is well.'))
  const { run_id: id, session_id: session } = await chat('How is it?')
  await read(id)
  const seen = await view(id)
  assert.equal(
    [seen.run_id, seen.session_id, seen.status, seen.answer, seen.error, seen.questions],
    [id, session, 'done', 'All is well.', null, []],
  )
  const { input_tokens: input, output_tokens: output, total_tokens: total } = seen.usage!
  assert.ok(input > 0 && output > 0 && total === input + output)
  assert.ok(seen.credits! > 0 && seen.ended_at !== null)
})

test('a run under way shows what it has said so far, and a failed one why it failed', async () => {
  const gate = door()
  const { chat, view, read } = await start(async function* () {
    yield [text('Half of it')]
    await gate.passed
    throw fault('MODEL_REFUSED', { why: 'it is against its rules' })
  })
  const { run_id: id } = await chat('Go on')
  await until('it has begun', async () => (await view(id)).answer !== '')
  const half = await view(id)
  assert.equal([half.status, half.answer, half.ended_at], ['running', 'Half of it', null])
  gate.open()
  await read(id)
  const failed = await view(id)
  assert.is(failed.status, 'failed')
  assert.is(failed.error!.code, 'MODEL_REFUSED')
  assert.match(failed.error!.detail, /against its rules/)
})

test('a run that ends while it is read is shown before its end, or after it', async () => {
  const gate = door()
  const { chat, view, read, eventlog } = await start(async function* () {
    yield [text('Half of it')]
    await gate.passed
    throw fault('MODEL_REFUSED', { why: 'it is against its rules' })
  })
  const { run_id: id } = await chat('Go on')
  await until('it has begun', async () => (await view(id)).answer !== '')
  const { bounds } = eventlog
  Object.assign(eventlog, {
    bounds: async (stream: string) => {
      const before = await bounds(stream)
      Object.assign(eventlog, { bounds })
      gate.open()
      await read(id)
      return before
    },
  })
  const seen = await view(id)
  assert.equal([seen.status, seen.ended_at, seen.error], ['running', null, null])
  const { status, ended_at: end, error } = await view(id)
  assert.equal([status, end !== null, error?.code], ['failed', true, 'MODEL_REFUSED'])
})

test('a fork that was cut at a request does not show the answer to it', async () => {
  const { chat, read, get, call, token, view } = await start(() => says('Not wanted.'))
  const { run_id: id, session_id: session } = await chat('How is it?')
  await read(id)
  const { items } = await get<{ items: { id: string }[] }>(`/sessions/${session}/messages`)
  const branch = async (body: object) => {
    const fork = await call('POST', `/sessions/${session}/branch`, { token, body })
    const { id: of } = fork.body as { id: string }
    return (await get<{ runs: View[] }>(`/sessions/${of}`)).runs[0]!.run_id
  }
  assert.is((await view(await branch({}))).answer, 'Not wanted.')
  assert.is((await view(await branch({ message_id: items[0]!.id }))).answer, '')
})

test('a question is there until it is answered, and other runs are not found', async () => {
  const { chat, view, call, token, read, account } = await start(
    request => (resultsIn(request).length > 0 ? says('Done.') : calls(called('one', 'wipe'))),
    { tools: [asking] },
  )
  const { run_id: id } = await chat('Wipe it')
  await until('it asks', async () => (await view(id)).questions.length === 1)
  const { status, questions } = await view(id)
  assert.equal([status, questions[0]!.type], ['waiting', 'approval'])
  const stranger = await call('GET', `/runs/${id}`, { token: (await account()).token })
  assert.is(stranger.status, 404)
  const path = `/runs/${id}/respond`
  const body = { question_id: questions[0]!.data.question_id, answer: true }
  assert.is((await call('POST', path, { token, body })).status, 200)
  assert.equal((await view(id)).questions, [])
  await read(id)
  assert.is((await view(id)).answer, 'Done.')
})

test('runs are listed by status, agent, conversation and time, a page at a time', async () => {
  const { chat, read, get, call, token } = await start(() => says('ok'), {
    agents: [{ key: 'other', name: 'Other', instruction: 'Answer.' }],
  })
  const ids: string[] = []
  let session = ''
  for (const [i, app] of ['main', 'other', 'main', 'main'].entries()) {
    const { run_id: id, session_id: of } = await chat(`Number ${i}`, {
      app_name: app,
      ...(i === 3 ? { session_id: session } : {}),
    })
    if (i === 0) session = of
    await read(id)
    ids.unshift(id)
  }
  const [third, second, first, begun] = ids
  const idsOf = async (query: string) =>
    (await get<List>(`/runs${query}`)).items.map(({ run_id: id }) => id)
  const all = [third, begun, second, first]
  assert.equal(await idsOf(''), all, 'the first conversation went on at the end')
  assert.equal(await idsOf('?status=done'), all)
  assert.equal(await idsOf('?status=failed'), [])
  assert.equal(await idsOf('?app_name=other'), [first])
  assert.equal(await idsOf(`?session_id=${session}`), [third, begun])
  const { created_at: at } = await get<{ created_at: string }>(`/runs/${second}`)
  assert.equal(await idsOf(`?from=${at}`), [third, second])
  assert.equal(await idsOf(`?to=${at}`), [begun, first])
  for (const [query, expected] of [
    ['limit=1', all],
    ['limit=3', all],
    ['limit=1&app_name=main', [third, begun, second]],
    [`limit=1&session_id=${session}`, [third, begun]],
  ] as const) {
    const paged: string[] = []
    for (let more = ''; ; ) {
      const page: List = await get<List>(`/runs?${query}${more}`)
      paged.push(...page.items.map(({ run_id: id }) => id))
      if (page.next_cursor === undefined) break
      more = `&cursor=${page.next_cursor}`
    }
    assert.equal(paged, expected, query)
  }
  const lost = await call('GET', '/runs?status=lost', { token })
  assert.is(lost.status, 400)
  assert.match(lost.text, /must be one of running, queued/)
  const fork = await call('POST', `/sessions/${session}/branch`, { token, body: {} })
  assert.is(fork.status, 201)
  assert.equal(await idsOf(''), all, 'copies in a fork were run by nobody')
  for (const cursor of ['x', Buffer.from('[1]').toString('base64url'), 'bnVsbA'])
    assert.is((await call('GET', `/runs?cursor=${cursor}`, { token })).status, 400, cursor)
})

test.after(endEngines)
test.run()
