// The search server dies and comes back under runs whose tools index and find; the product is not
// started again.
// RUNS=200 for more than the tests take.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import { openSearch } from '#adapters/search/opensearch.ts'
import type { Passage } from '#ports/search.ts'
import { sameRuns, sawItWhole, verifiesClean } from '../durability/checks.ts'
import { pause, textOf, type Client, type Follower, type Seen } from '../durability/client.ts'
import { endRounds, open, standstill, type Env } from '../durability/round.ts'
import { opening } from '../conformance/opening.ts'
import type { Process } from '../support/process.ts'
import type { Server } from '../servers/server.ts'
import { endClusters, startCluster } from './cluster.ts'
import { remembered } from './plugins/memory/plugin.ts'
import { controlOn, harmlessServer } from './search-server.ts'
import { openStore } from './store.ts'

const size = Number(process.env['RUNS'] ?? 40)
const standstillMs = 60_000
const title = `${size} runs: kill -9 of the search server`
const settings = (url: string): Env => ({
  SEARCH_URL: url,
  PLUGINS_DIR: join(import.meta.dirname, 'plugins'),
  MODELS_URL: 'scripted:?tokens=10&interval_ms=200',
  RUNS_LEASE_MS: '3000',
  RUNS_SWEEP_MS: '1000',
})
const words = Array.from({ length: 10 }, (_, n) => `token${String(n).padStart(2, '0')} `).join('')
const told = 'One moment, please, I look. '

/** Each remembers, recalls, and does so again; every other one waits where the index is away. */
const requestOf = (key: string) => {
  const patient = Number(key.slice(3)) % 2 === 0
  const calls = ['first', 'second'].flatMap(which =>
    ['remember', 'recall'].map(name => [
      name,
      { text: name === 'recall' ? `${key}${which}` : `${key}${which} is remembered`, patient },
    ]),
  )
  return { message: `${key} [[tools=${JSON.stringify(calls)}]] [[tool_text=${told}]]` }
}
const callsOf = (log: readonly Seen[]) => {
  const of = (type: string) =>
    log
      .filter(one => one.type === type)
      .map(
        ({ data }) =>
          data as {
            step: number
            call_id: string
            name: string
            status?: string
            content?: string
            arguments?: { text: string; patient: boolean }
          },
      )
  return { made: of('tool_call'), answered: of('tool_result') }
}
type Kept = { readonly id: string; readonly text: string }
type Checked = { readonly kept: readonly Kept[]; readonly failed: number; readonly credits: number }

/**
 * A run ended as it should: each call has one result, which is an answer, or says that the index is
 * away; what was acknowledged before is found.
 */
async function checkRun(client: Client, follower: Follower): Promise<Checked> {
  const log = await sawItWhole(client, follower)
  const { key } = follower
  const { made, answered } = callsOf(log)
  const kept: Kept[] = []
  assert.equal([log.at(-1)!.type, log.at(-1)!.data['status']], ['done', 'done'], key)
  assert.is(textOf(follower.frames.values()), `${told}\n\n`.repeat(4) + words, key)
  assert.equal(
    made.map(({ name, call_id: id }) => [name, id]),
    answered.map(({ name, call_id: id }) => [name, id]),
    `${key}: each call has one result`,
  )
  assert.equal(
    made.map(({ name }) => name),
    ['remember', 'recall', 'remember', 'recall'],
    key,
  )
  let failed = 0
  let last: string | undefined
  for (const [at, { status, content, name }] of answered.entries()) {
    const { text, patient } = made[at]!.arguments!
    if (status === 'ok') {
      const answer = JSON.parse(content!) as { id: string; found: string[] }
      if (name === 'remember') kept.push({ id: answer.id, text })
      // What was not acknowledged may be there all the same, and nothing else.
      else if (last !== undefined)
        assert.equal(answer.found, [last], `${key}: what was acknowledged is found`)
      else assert.ok(answer.found.length <= 1, key)
    } else {
      failed++
      assert.equal([status, patient], ['failed', false], `${key}: ${content}`)
      assert.match(content!, /^The search service is not available: /, key)
    }
    last = name === 'remember' && status === 'ok' ? kept.at(-1)!.id : undefined
  }
  return {
    kept,
    failed,
    credits: Number(log.find(({ type }) => type === 'usage')!.data['credits']),
  }
}

/** Everything that the organisation's collection holds. */
async function heldBy(url: string, orgId: string): Promise<readonly Passage[]> {
  const engine = await openSearch(opening(url, { clock: systemClock() }))
  const held: Passage[] = []
  for (let after = ''; ; after = held.at(-1)!.id) {
    const { passages } = await engine.contents(orgId, `memory/${remembered}`, {
      after,
      limit: 1000,
    })
    held.push(...passages)
    if (passages.length < 1000) break
  }
  assert.is(await engine.within(orgId).count(`memory/${remembered}`), held.length)
  await engine.close()
  return held
}

type Product = {
  readonly client: Client
  readonly orgId: string
  /** Of a living process, for commands. */
  readonly env: Env
  /** Credits that the account began with. */
  readonly credits: number
  readonly processes: readonly Process[]
}

async function play(server: Server, begin: (settings: Env) => Promise<Product>): Promise<void> {
  const url = `${server.url}killed-${crypto.randomUUID()}`
  const control = await controlOn(server.port)
  const { env, client, orgId, credits, processes } = await begin(settings(url))
  const followers: Follower[] = []
  const reading: Promise<void>[] = []
  let started = 0
  let answers = 0
  let refusals = 0
  let isOver = false
  const start = async (count: number) =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const key = `key${started++}`
        const { follower, over } = client.follow(
          await client.start(key, requestOf(key)),
          key,
          ({ type, data }) => {
            if (type !== 'tool_result') return
            answers++
            if (data['status'] === 'failed') refusals++
          },
        )
        followers.push(follower)
        reading.push(over)
      }),
    )
  const killed = (async () => {
    await start(size / 2)
    // Some are done with their first call, others are making it.
    while (answers < size / 4 && !isOver) await pause(5)
    await server.kill()
    await start(size / 4)
    // A call is tried again for seconds before anybody is told.
    while (refusals === 0 && !isOver) await pause(50)
    await server.again()
    await start(size - started)
    await Promise.all(reading)
  })()
  let lost: Awaited<ReturnType<typeof control>> | undefined
  try {
    await Promise.race([killed, standstill(followers, standstillMs)])
    const checked = await Promise.all(followers.map(follower => checkRun(client, follower)))
    const kept = checked.flatMap(one => one.kept)
    assert.is(checked.length, size)
    assert.ok(
      checked.some(({ failed }) => failed > 0),
      'some were told that the index is away',
    )
    assert.ok(kept.length > size, `${kept.length} passages were acknowledged`)
    lost = await control()
    assert.equal(lost.lost, [], 'the server kept what it acknowledged')
    const held = await heldBy(url, orgId)
    const texts = new Map(held.map(({ id, text }) => [id, text]))
    assert.equal(
      kept.filter(({ id, text }) => texts.get(id) !== text),
      [],
      'each acknowledged passage is there as it was given',
    )
    assert.is(new Set(held.map(({ text }) => text)).size, held.length, 'none is there twice')
    assert.equal([...new Set(checked.map(one => one.credits))], [1], 'each costs its one credit')
    assert.equal(
      await client.balance(),
      { balance: credits - size, held: 0, available: credits - size },
      'each was charged once, and nothing is held',
    )
    await sameRuns(client, followers, requestOf)
    await verifiesClean(env, size)
    for (const { child } of processes) assert.is(child.exitCode, null, 'the product lives')
  } catch (error) {
    isOver = true
    // What the server itself lost is told first: it is no fault of the product.
    const { lost: gone, acknowledged } = lost ?? (await control())
    throw new Error(
      `${(error as Error).message}\nThe client beside it lost ${gone.length} of ` +
        `${acknowledged} acknowledged ` +
        `writes.\n${processes.map(({ errors }) => errors().slice(-2000)).join('\n')}`,
      { cause: error },
    )
  }
}

const searchServer = await harmlessServer()
const store = await openStore()
if ('why' in searchServer) test.skip(`${title} (${searchServer.why})`, () => undefined)
else {
  test(title, () =>
    play(searchServer, async env => {
      const { server: product, ...opened } = await open(env)
      return { ...opened, credits: 10_000, processes: [product] }
    }),
  )
  if ('why' in store) test.skip(`${title}, between processes (${store.why})`, () => undefined)
  else
    test(`${title}, between a process that answers and one that drives`, () =>
      play(searchServer, async env => {
        const { members, ...cluster } = await startCluster(
          store.database.url.href,
          ['api', 'worker'],
          env,
        )
        return { ...cluster, processes: members.map(({ process }) => process()) }
      }))
}
test.after(async () => {
  await endRounds()
  await endClusters()
  if (!('why' in store)) await store.close()
  if (!('why' in searchServer)) await searchServer.stop()
})
test.run()
