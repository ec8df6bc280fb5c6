// Pages of runs: cursors that no page gave, filters beside what is shown, and what one page reads.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import { endEngines, startEngine, until } from '../../../test/support/engine.ts'
import { door, says } from '../../../test/support/scripted-model.ts'
import { fault } from '#kernel'
import { Runs, Sessions, type Run } from '../collections.ts'

type Item = { run_id: string; status: string }
type List = { items: Item[]; next_cursor?: string }

async function start(...args: Parameters<typeof startEngine>) {
  const engine = await startEngine(...args)
  const { token } = engine.who
  const list = async (query: string) => {
    const { status, body } = await engine.call('GET', `/runs?${query}`, { token })
    assert.is(status, 200, JSON.stringify(body))
    return body as List
  }
  const answered = async (message: string, more: { session_id?: string } = {}) => {
    const started = await engine.chat(message, more)
    await engine.read(started.run_id)
    await engine.closed(started.run_id)
    return started
  }
  return { ...engine, token, list, answered }
}
/** Copies of a run in its conversation, each older than the one before. */
async function older(storage: StorageEngine, run: Run, count: number): Promise<string[]> {
  const runs = Array.from({ length: count }, (_, i) => ({
    ...run,
    id: `00000000-0000-7000-8000-${String(count - i).padStart(12, '0')}`,
    messageId: crypto.randomUUID(),
    answerId: crypto.randomUUID(),
  }))
  const { error } = await storage.insertMany(Runs, runs)
  if (error) throw error
  return runs.map(({ id }) => id)
}

test('a cursor that no page gave is refused before anything is read for it', async () => {
  const { list, call, token, answered, storage, run } = await start(() => says('ok'))
  const { run_id: id, session_id: session } = await answered('one')
  await older(storage, await run(id), 1)
  const { next_cursor: given } = await list('limit=1')
  const [at] = JSON.parse(Buffer.from(given!, 'base64url').toString()) as [number]
  for (const place of [
    [at, session, { length: 30_000_000 }],
    [at, session, ['a']],
    [at, session, ''],
    [at, session, 7],
    [at, session],
    [at, `${session}\u0000`, null],
    [at, { toString: 1 }, id],
    [1e300, session, id],
    'abc',
  ]) {
    const cursor = Buffer.from(JSON.stringify(place)).toString('base64url')
    const { status, body } = await call('GET', `/runs?cursor=${cursor}`, { token })
    assert.equal(
      [status, (body as { detail: string }).detail],
      [400, 'cursor: is not one that a page gave.'],
      JSON.stringify(place),
    )
  }
})

test('a run is found by the status that it is shown with', async () => {
  const gate = door()
  let calls = 0
  const { chat, list, closed } = await start(async function* () {
    if (calls++ > 0) return yield* says('ok')
    await gate.passed
    throw fault('MODEL_REFUSED', { why: 'it is against its rules' })
  })
  const first = await chat('one')
  const second = await chat('two', { session_id: first.session_id })
  const idsOf = async (status: string) =>
    (await list(`status=${status}`)).items.map(({ run_id: id }) => id)
  assert.equal([await idsOf('queued'), await idsOf('blocked')], [[second.run_id], []])
  gate.open()
  await closed(first.run_id)
  await until('the queue pauses', async () => (await list('')).items[0]!.status === 'blocked')
  assert.equal([await idsOf('queued'), await idsOf('blocked')], [[], [second.run_id]])
  assert.equal([await idsOf('failed'), await idsOf('running')], [[first.run_id], []])
})

test('a conversation that goes on between two pages is shown to its end', async () => {
  const { list, answered, storage, run } = await start(() => says('ok'))
  const { run_id: begun } = await answered('first conversation')
  const { run_id: latest, session_id: session } = await answered('second conversation')
  const all = [latest, ...(await older(storage, await run(latest), 3)), begun]
  const first = await list('limit=2')
  await answered('go on', { session_id: session })
  const seen = first.items.map(({ run_id: id }) => id)
  for (let cursor = first.next_cursor; cursor !== undefined; ) {
    const page = await list(`limit=1&cursor=${cursor}`)
    seen.push(...page.items.map(({ run_id: id }) => id))
    cursor = page.next_cursor
  }
  assert.equal(seen, all)
})

test('a page of one run reads many at a time where a filter leaves most of them out', async () => {
  const { list, answered, storage, run } = await start(() => says('ok'))
  const { run_id: id } = await answered('one')
  const seen = await run(id)
  const ids = await older(storage, seen, 300)
  for (const at of [10, 11, 290])
    await storage.update(Runs, ids[at]!, {
      set: { request: { ...seen.request, app_name: 'rare' } },
    })
  let finds = 0
  const { find } = storage
  Object.assign(storage, {
    find: (...asked: Parameters<StorageEngine['find']>) => {
      if (asked[0].name === Runs.name) finds++
      return find(...asked)
    },
  })
  const found: string[] = []
  for (let cursor = ''; ; ) {
    const page = await list(`limit=1&app_name=rare${cursor}`)
    found.push(...page.items.map(({ run_id: one }) => one))
    if (page.next_cursor === undefined) break
    cursor = `&cursor=${page.next_cursor}`
  }
  assert.equal(found, [ids[10], ids[11], ids[290]])
  assert.ok(finds <= 12, `${finds} queries`)
})

test('runs of a conversation that is being removed are not listed', async () => {
  const { list, answered, storage } = await start(() => says('ok'))
  const { session_id: session } = await answered('one')
  await storage.update(Sessions, session, { set: { deleting: true } })
  assert.equal((await list(`session_id=${session}`)).items, [])
  assert.equal((await list('')).items, [])
})

test.after(endEngines)
test.run()
