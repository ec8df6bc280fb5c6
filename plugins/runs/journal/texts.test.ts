// Long messages and long answers, over the API. Limits of stores are in bytes.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, lasting, saidIn, startEngine } from '../../../test/support/engine.ts'
import { ends, lastWords, says, text } from '../../../test/support/scripted-model.ts'
import { jsonBytes } from './bytes.ts'

const wide = '漢'
const engine = await startEngine(
  request => {
    const [what, size] = lastWords(request).split(' ')
    if (what === 'long') return [[text(wide.repeat(Number(size))), ...ends()]]
    return says('hello')
  },
  { model: { contextTokens: 4_000_000, outputTokensMax: 1_000_000 }, credits: 1_000_000 },
)

test('what a provider sends at once is shown in pieces that fit', async () => {
  const list = await engine.answered('long 700000')
  assert.is(saidIn(list), wide.repeat(700_000))
  assert.ok(dataOf(list, 'token').every(one => jsonBytes(one) < 66_000))
})

test('a long message and a long answer are kept whole beside the document', async () => {
  const kept = () =>
    engine.eventlog
      .streams({ limit: 1000 })
      .then(names => names.filter(name => name.includes('/text:')).length)
  const before = await kept()
  const message = `long 290000 ${wide.repeat(180_000)}`
  const { run_id: id, session_id: sessionId } = await engine.chat(message)
  const token = engine.who.token
  assert.is((await engine.read(id)).at(-1)!.data['status'], 'done')
  await engine.closed(id)
  const run = await engine.run(id)
  const answer = wide.repeat(290_000)
  assert.ok(jsonBytes(run) < 140_000, `the document takes ${jsonBytes(run)} bytes`)
  const messages = async (session: string) =>
    (
      (await engine.call('GET', `/sessions/${session}/messages`, { token })).body as {
        items: { content: string }[]
      }
    ).items.map(({ content }) => content)
  assert.equal(
    (await messages(sessionId)).map(({ length }) => length),
    [message.length, answer.length],
  )
  assert.ok((await messages(sessionId))[1] === answer)
  await engine.answered('and now?', { session_id: sessionId })
  assert.equal(
    engine.model.requests
      .at(-1)!
      .messages.slice(1)
      .map(({ content }) => content.length),
    [message.length, answer.length, 8],
  )
  const fork = (await engine.call('POST', `/sessions/${sessionId}/branch`, { token, body: {} }))
    .body as { id: string }
  assert.equal(
    (await messages(fork.id)).map(({ length }) => length),
    [message.length, answer.length, 8, 5],
  )
  assert.equal(
    ((await engine.kernel.commands().get('verify')!.run({})) as { told: unknown[] }).told,
    [],
  )
  assert.is((await kept()) - before, 2, 'a fork shares them')
  assert.is((await engine.call('DELETE', `/sessions/${sessionId}`, { token })).status, 204)
  assert.is((await kept()) - before, 2, 'and inherits them')
  assert.equal(
    (await messages(fork.id)).map(({ length }) => length),
    [message.length, answer.length, 8, 5],
  )
  assert.is((await engine.call('DELETE', `/sessions/${fork.id}`, { token })).status, 204)
  assert.is(await kept(), before)
})

test('control characters take six bytes each; a refused message leaves nothing', async () => {
  const message = '\u0001'.repeat(100_000)
  assert.is((await engine.answered(message)).at(-1)!.data['status'], 'done')
  const poor = await engine.account(0)
  const before = (await engine.eventlog.streams({ limit: 1000 })).length
  assert.is((await engine.start(message, {}, poor)).status, 402)
  assert.is((await engine.eventlog.streams({ limit: 1000 })).length, before)
})

test('of a conversation of long messages no more is read than is told or fits', async () => {
  const { storage, eventlog } = lasting()
  const looked = new Set<string>()
  const read = (...[stream, options]: Parameters<typeof eventlog.read>) => {
    if (stream.includes('text:')) looked.add(stream)
    return eventlog.read(stream, options)
  }
  const counting = async <T>(act: () => Promise<T>) => {
    looked.clear()
    const value = await act()
    return { value, looked: looked.size }
  }
  const own = await startEngine(() => says('hello'), {
    model: { contextTokens: 4_000_000 },
    given: { storage, eventlog: { ...eventlog, read } },
    credits: 1_000_000,
    env: { RUNS_PAGE_CHARS_MAX: '2000000', RUNS_SEARCH_WAIT_MS: '600000' },
  })
  const call = async (method: string, path: string, body?: object) =>
    (await own.call(method, path, { token: own.who.token, ...(body ? { body } : {}) })).body as {
      id: string
      items: { content: string }[]
      next_cursor?: string
    }
  let session: string | undefined
  const say = async () => {
    const started = await own.chat('x'.repeat(900_000), session ? { session_id: session } : {})
    session = started.session_id
    await own.read(started.run_id)
    await own.closed(started.run_id)
  }
  for (let i = 0; i < 9; i++) await say()
  const page = (cursor?: string) =>
    call('GET', `/sessions/${session}/messages?limit=200${cursor ? `&cursor=${cursor}` : ''}`)
  const first = await counting(() => page())
  const contents = first.value.items.map(({ content }) => content.length)
  assert.equal(contents, [900_000, 5, 900_000, 5])
  assert.ok(first.looked <= 4, `${first.looked} long texts were read for a page that holds two`)
  let told = contents.length
  for (let next = first.value.next_cursor; next; ) {
    const { items, next_cursor: further } = await page(next)
    told += items.length
    next = further
  }
  assert.is(told, 18, 'every message is on some page')
  assert.is(
    (await counting(() => call('POST', `/sessions/${session}/branch`, {}))).looked,
    0,
    'a fork shares its texts unread',
  )
  const next = await counting(say)
  assert.ok(next.looked <= 5, `${next.looked} long texts were read for a history that holds two`)
})

test.after(endEngines)
test.run()
