// Forking, cutting back and searching conversations over the API.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents, startServer } from '../../../test/conformance/plugin/server.ts'

const server = await startServer({
  env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000' },
})
type Started = { run_id: string; session_id: string }
type Message = { id: string; role: string; content: string; run_id: string }
const talker = async () => {
  const { token } = await server.account(1000)
  const say = async (message: string, session_id?: string) => {
    const run = (
      await server.call('POST', '/chat', {
        token,
        body: { message, ...(session_id ? { session_id } : {}) },
      })
    ).body as Started
    await readEvents(await server.stream(token, run.run_id))
    return run
  }
  const messages = async (id: string) =>
    ((await server.call('GET', `/sessions/${id}/messages`, { token })).body as { items: Message[] })
      .items
  const contents = async (id: string) => (await messages(id)).map(({ content }) => content)
  const call = (method: string, path: string, body?: object) =>
    server.call(method, path, { token, ...(body ? { body } : {}) })
  return { token, say, messages, contents, call }
}
const talk = async (who: Awaited<ReturnType<typeof talker>>, ...words: string[]) => {
  const { session_id: id } = await who.say(`[[text=A${words[0]}]] ${words[0]}`)
  for (const word of words.slice(1)) await who.say(`[[text=A${word}]] ${word}`, id)
  return id
}
const said = (...words: string[]) =>
  words.flatMap(word => [`[[text=A${word}]] ${word}`, `A${word}`])

test('a fork holds everything up to the message, goes on by itself, and cost nothing', async () => {
  const who = await talker()
  const id = await talk(who, 'one', 'two', 'three')
  const all = await who.messages(id)
  const before = (await who.call('GET', '/balance')).body
  const { status, body: fork } = await who.call('POST', `/sessions/${id}/branch`, {
    message_id: all[3]!.id,
    title: 'The fork',
  })
  const forked = fork as { id: string; title: string; status: string }
  assert.equal([status, forked.title, forked.status], [201, 'The fork', 'idle'])
  assert.equal(await who.contents(forked.id), said('one', 'two'))
  assert.equal((await who.call('GET', '/balance')).body, before)
  const [copy] = await who.messages(forked.id)
  assert.equal(
    (await readEvents(await server.stream(who.token, copy!.run_id))).map(({ event, data }) => [
      event,
      data['text'] ?? data['credits'] ?? data['status'],
    ]),
    [
      ['token', 'Aone'],
      ['usage', 0],
      ['done', 'done'],
    ],
  )
  await who.say('[[text=Aother]] other', forked.id)
  assert.equal(await who.contents(forked.id), said('one', 'two', 'other'))
  assert.equal(
    await who.contents(id),
    said('one', 'two', 'three'),
    'the first conversation is untouched',
  )
  const request = (await who.call('POST', `/sessions/${id}/branch`, { message_id: all[2]!.id }))
    .body as { id: string }
  assert.equal(
    await who.contents(request.id),
    said('one', 'two').slice(0, 3),
    'forked at a request, its answer stays behind',
  )
  const verified = (await server.kernel.commands().get('verify')!.run({})) as { told: unknown[] }
  assert.equal(verified.told, [])
})

test('a busy conversation can be forked, and not cut back', async () => {
  const who = await talker()
  const id = await talk(who, 'one')
  const run = (await who.call('POST', '/chat', { message: '[[stall_after=0]]', session_id: id }))
    .body as Started
  assert.is((await who.call('POST', `/sessions/${id}/branch`, {})).status, 201)
  const [first] = await who.messages(id)
  assert.is(
    (await who.call('POST', `/sessions/${id}/truncate`, { message_id: first!.id })).status,
    409,
  )
  await who.call('POST', `/runs/${run.run_id}/cancel`)
})

test('a conversation shows the events of what goes on, not of what waits behind it', async () => {
  const who = await talker()
  const run = (await who.call('POST', '/chat', { message: '[[stall_after=2]]' })).body as Started
  await readEvents(await server.stream(who.token, run.run_id), ({ event }) => event === 'token')
  const waiting = (await who.call('POST', '/chat', { message: 'next', session_id: run.session_id }))
    .body as Started
  const { runs, events } = (await who.call('GET', `/sessions/${run.session_id}`)).body as {
    runs: { run_id: string }[]
    events: { run_id: string; type: string }[]
  }
  assert.equal(
    runs.map(({ run_id: id }) => id),
    [waiting.run_id, run.run_id],
  )
  assert.equal(
    [...new Set(events.map(({ run_id: id, type }) => `${id} ${type}`))],
    [`${run.run_id} token`],
  )
  await who.call('POST', `/runs/${run.run_id}/cancel`)
})

test('a cut back to a message removes what follows, for the model too', async () => {
  const who = await talker()
  const id = await talk(who, 'one', 'two', 'three')
  const all = await who.messages(id)
  assert.is(
    (await who.call('POST', `/sessions/${id}/truncate`, { message_id: all[3]!.id })).status,
    200,
  )
  assert.equal(await who.contents(id), said('one', 'two'))
  assert.is((await who.call('GET', `/runs/${all[4]!.run_id}/events`)).status, 404)
  await who.call('POST', `/sessions/${id}/truncate`, { message_id: all[2]!.id })
  assert.equal(await who.contents(id), said('one', 'two').slice(0, 3))
  for (const message_id of [all[5]!.id, crypto.randomUUID()])
    assert.is((await who.call('POST', `/sessions/${id}/truncate`, { message_id })).status, 404)
})

test("a search finds every word of one's own conversations, page by page", async () => {
  const who = await talker()
  const stranger = await talker()
  const harbour = await talk(who, 'Harbour')
  const lighthouse = await talk(who, 'Lighthouse')
  const both = await talk(who, 'harbour lighthouse')
  await talk(stranger, 'harbour')
  const find = async (query: string) =>
    (await who.call('GET', `/sessions/search?${query}`)).body as {
      items: { session: { id: string }; matches: { role: string; excerpt: string }[] }[]
      next_cursor?: string
    }
  // Messages are indexed when their run has ended.
  for (const query of ['q=HARBOUR', 'q=lighthouse+harbour', 'q=alighthouse'])
    while ((await find(query)).items.length < (query === 'q=HARBOUR' ? 2 : 1))
      await new Promise(resolve => setTimeout(resolve, 10))
  assert.equal(
    (await find('q=HARBOUR')).items.map(({ session }) => session.id),
    [both, harbour],
  )
  assert.equal(
    (await find('q=lighthouse+harbour')).items.map(({ session }) => session.id),
    [both],
  )
  assert.equal((await find('q=nothing')).items, [])
  assert.equal(
    (await find('q=alighthouse')).items.map(({ session, matches }) => [
      session.id,
      matches.map(({ role, excerpt }) => [role, excerpt]),
    ])[0]![0],
    lighthouse,
  )
  const first = await find('q=harbour&limit=1')
  const second = await find(`q=harbour&limit=1&cursor=${encodeURIComponent(first.next_cursor!)}`)
  assert.equal(
    [...first.items, ...second.items].map(({ session }) => session.id),
    [both, harbour],
  )
  assert.is((await who.call('GET', '/sessions/search?q=%21%21')).status, 400)
  assert.is((await who.call('GET', '/sessions/search?q=x&cursor=nothing')).status, 400)
})

test.after(() => server.stop())
test.run()
