// Conversations are found by their words, to the last page. That includes those older than the
// index, and excludes removed ones.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { readEvents, startServer, type Account } from '../../../test/conformance/plugin/server.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'

const clock = systemClock()
const engine = memoryStorage(clock)
let calls = 0
const counting = new Proxy(engine, {
  get: (target, name) => {
    const value = Reflect.get(target, name) as unknown
    return typeof value === 'function'
      ? (...args: unknown[]) => (calls++, (value as (...all: unknown[]) => unknown)(...args))
      : value
  },
}) as StorageEngine
const server = await startServer({
  given: { storage: counting },
  env: {
    RUNS_RETENTION_MS: '50',
    RUNS_SEARCH_WAIT_MS: '0',
    RUNS_SWEEP_MS: '3600000',
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
  },
})

type Found = {
  items: {
    session: { id: string; title: string }
    matches: { message_id: string; role: string; excerpt: string }[]
  }[]
  next_cursor?: string
}
const searcher = (who: Account) => {
  const call = (method: string, path: string, body?: object) =>
    server.call(method, path, { token: who.token, ...(body ? { body } : {}) })
  const find = async (q: string, more = '') =>
    (await call('GET', `/sessions/search?q=${encodeURIComponent(q)}${more}`)).body as Found
  return {
    call,
    find,
    /** Repeats the search until `count` are found: the index is written in the background. */
    async until(q: string, count: number): Promise<Found> {
      for (;;) {
        const found = await find(q, '&limit=100')
        if (found.items.length === count) return found
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    },
    async say(message: string, session_id?: string): Promise<string> {
      const run = (await call('POST', '/chat', { message, ...(session_id ? { session_id } : {}) }))
        .body as { run_id: string; session_id: string }
      await readEvents(await server.stream(who.token, run.run_id))
      return run.session_id
    },
    contents: async (id: string) =>
      (
        (await call('GET', `/sessions/${id}/messages`)).body as {
          items: { id: string; content: string }[]
        }
      ).items,
  }
}
/** Runs as a version without an index left them: without a mark. */
const writeSessions = async (
  { org_id: orgId, user_id: userId }: Account,
  count: number,
  runsEach: number,
  words: (session: number, run: number) => string,
  more: Partial<Run> = {},
): Promise<string[]> => {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const id = clock.id()
    const runs = Array.from(
      { length: runsEach },
      (_, at) =>
        ({
          id: clock.id(),
          orgId,
          userId,
          sessionId: id,
          phase: 'closed',
          status: 'done',
          epoch: 1,
          beat: 1,
          request: { message: words(n, at), app_name: 'main', client_tz: 'UTC' },
          opensSession: at === 0,
          messageId: clock.id(),
          answerId: clock.id(),
          model: 'm',
          hold: 0,
          wakes: 0,
          replies: 0,
          createdAt: 1,
          endedAt: 2,
          answer: 'an answer',
          ...more,
        }) as unknown as Run,
    )
    for (let at = 0; at < runs.length; at += 200)
      await engine.insertMany(Runs, runs.slice(at, at + 200))
    await engine.insert(Sessions, {
      id,
      orgId,
      userId,
      title: `Talk ${n}`,
      appName: 'main',
      latest: runs.at(-1)!.id,
      queue: [],
      queued: 0,
      paused: false,
      rev: 0,
      createdAt: 1,
      updatedAt: 1,
    } as Session)
    ids.push(id)
  }
  return ids
}

test('a search finds what was said before there was an index, at the same cost', async () => {
  const few = await server.account()
  const many = await server.account()
  const [one, other] = [searcher(few), searcher(many)]
  await writeSessions(few, 12, 1, () => 'the harbour')
  const ids = await writeSessions(many, 130, 1, n => `the harbour ${n}`)
  const [long] = await writeSessions(
    many,
    1,
    450,
    (_, n) => `harbour lights${n === 3 ? ' lantern' : ''}`,
  )
  await server.kernel.commands().get('reindex')!.run({})
  await Promise.all([one.until('harbour', 12), other.until('lantern', 1)])
  const expected = [long!, ...ids.toReversed()]
  const found: Found['items'] = []
  for (let cursor = ''; ; ) {
    const page = await other.find('harbour', `&limit=25${cursor}`)
    found.push(...page.items)
    if (page.next_cursor === undefined) break
    assert.is(page.items.length, 25, 'only the last page is short')
    cursor = `&cursor=${page.next_cursor}`
  }
  assert.equal(
    found.map(({ session }) => session.id),
    expected,
  )
  assert.is(found[0]!.matches.length, 3)
  assert.match(
    (await other.find('lantern harbour')).items[0]!.matches[0]!.excerpt,
    'harbour lights lantern',
  )
  const cost = async (who: typeof one) => {
    await who.find('harbour', '&limit=10')
    const before = calls
    await who.find('harbour', '&limit=10')
    return calls - before
  }
  const costs = [await cost(one), await cost(other)]
  // Background work calls the storage meanwhile, too. A scan would call it once for each of a
  // hundred conversations.
  assert.ok(costs[1]! <= costs[0]! + 10, `${costs}`)
})

test('what a process that died had not written is taken up by its mark', async () => {
  const ann = await server.account()
  await writeSessions(ann, 1, 3, () => 'left behind', { unindexed: 1 })
  await searcher(ann).until('left', 1)
  while ((await engine.count(Runs, { userId: ann.user_id, unindexed: { exists: true } })) > 0)
    await new Promise(resolve => setTimeout(resolve, 10))
})

test('what is renamed, cut back or removed is found as it is now', async () => {
  const who = searcher(await server.account())
  const id = await who.say('[[text=Calm answer]] stormy weather')
  await who.say('[[text=Second answer]] thunder', id)
  await who.until('calm', 1)
  await who.until('thunder', 1)
  assert.equal(
    (await who.until('calm', 1)).items[0]!.matches.map(({ role }) => role),
    ['assistant', 'user'],
  )
  await who.call('PATCH', `/sessions/${id}`, { title: 'Meteorology' })
  assert.equal((await who.until('METEOROLOGY', 1)).items[0]!.matches, [], 'by its title alone')
  const [first] = await who.contents(id)
  await who.call('POST', `/sessions/${id}/truncate`, { message_id: first!.id })
  for (const q of ['thunder', 'second']) assert.equal((await who.find(q)).items, [], q)
  assert.equal(
    (await who.find('calm')).items[0]!.matches.map(({ role }) => role),
    ['user'],
    'its answer is cut off',
  )
  await who.until('stormy', 1)
  await who.call('DELETE', `/sessions/${id}`)
  for (const q of ['stormy', 'meteorology']) assert.equal((await who.find(q)).items, [], q)
})

test('a fork shares what it was made of, and inherits it when that goes', async () => {
  const ann = await server.account()
  const who = searcher(ann)
  const id = await who.say('[[text=Amber answer]] amber')
  const size = 'x'.repeat(20_000)
  await who.say(`[[text=Big answer]] ${size}`, id)
  await who.until('amber', 1)
  const bytes = async () =>
    (await engine.find(Runs, { where: { userId: ann.user_id }, limit: 200 })).items.reduce(
      (sum, run) => sum + JSON.stringify(run).length,
      0,
    )
  const before = await bytes()
  const forks = await Promise.all(
    Array.from(
      { length: 5 },
      async () =>
        ((await who.call('POST', `/sessions/${id}/branch`, {})).body as { id: string }).id,
    ),
  )
  assert.ok((await bytes()) < before + 5 * 2 * 3000, 'a copy takes no room for its texts')
  const contents = async (session: string) =>
    (await who.contents(session)).map(({ content }) => content)
  const all = await contents(id)
  assert.is(all.length, 4)
  for (const fork of forks) assert.equal(await contents(fork), all)
  const twice = (
    (await who.call('POST', `/sessions/${forks[0]}/branch`, {})).body as { id: string }
  ).id
  assert.is((await who.call('DELETE', `/sessions/${id}`)).status, 204)
  for (const fork of [...forks, twice])
    assert.equal(await contents(fork), all, 'with its origin gone')
  assert.ok((await bytes()) < before + 6 * 2 * 3000, 'one of them has the texts now')
  for (const fork of forks.slice(0, 4))
    assert.is((await who.call('DELETE', `/sessions/${fork}`)).status, 204)
  for (const fork of [forks[4]!, twice]) assert.equal(await contents(fork), all)
  const { items } = (await who.call('GET', `/sessions/${twice}/messages`)).body as {
    items: { run_id: string }[]
  }
  assert.equal(
    (await readEvents(await server.stream(ann.token, items[0]!.run_id))).map(
      ({ id: seq, event }) => [seq, event],
    ),
    [
      [1, 'token'],
      [2, 'usage'],
      [3, 'done'],
    ],
  )
  assert.is(
    (
      await who.call('POST', `/sessions/${twice}/truncate`, {
        message_id: (await who.contents(twice))[0]!.id,
      })
    ).status,
    200,
  )
  assert.equal(await contents(twice), all.slice(0, 1))
  assert.equal(await contents(forks[4]!), all)
  const verified = (await server.kernel.commands().get('verify')!.run({})) as {
    told: { org_id: string }[]
  }
  assert.equal(
    verified.told.filter(({ org_id: org }) => org === ann.org_id),
    [],
  )
})

test.after(() => server.stop())
test.run()
