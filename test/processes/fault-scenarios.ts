// Runs of every kind on several processes and one store, something that befalls them, and a client
// beside the product whose acknowledged writes are asked for afterwards.
// RUNS=200 for more than the tests take.
import * as assert from 'uvu/assert'
import { MongoClient } from 'mongodb'
import { pause, type Follower } from '../durability/client.ts'
import { playRuns, type Env, type Load } from '../durability/round.ts'
import type { Test } from 'uvu'
import { startProxy, type Proxy } from '../support/databases/proxy.ts'
import type { Server } from '../servers/server.ts'
import { endClusters, startCluster, type Cluster } from './cluster.ts'
import { toldOf } from './journals.ts'
import { openStore } from './store.ts'

const size = {
  runs: Number(process.env['RUNS'] ?? 60),
  atOnce: 20,
  everyMs: 500,
  // Longer than two calls to the store may take by their own limits, 50 s each.
  standstillMs: 150_000,
}
/** Between two writes of the client beside the product, in milliseconds. */
const controlMs = 50
/**
 * Slower than the chaos on the embedded default: here the store is asked over a network for every
 * few tokens of every run.
 */
const settings: Env = {
  MODELS_URL: 'scripted:?tokens=20&interval_ms=250',
  RUNS_LEASE_MS: '3000',
  RUNS_SWEEP_MS: '1000',
}

/**
 * Writes one document after the other until it is told to stop; answers which of those that were
 * acknowledged are not there.
 */
async function controlOn(url: string) {
  // A client whose first connection fails is closed for good, so a slow machine gets its time.
  const client = await new MongoClient(url, {
    serverSelectionTimeoutMS: 10_000,
    socketTimeoutMS: 5000,
    writeConcern: { w: 'majority', journal: true },
  }).connect()
  const kept = client.db('control').collection<{ _id: number }>('kept')
  const acknowledged: number[] = []
  let stopped = false
  const writing = (async () => {
    for (let n = 0; !stopped; n++) {
      await kept.insertOne({ _id: n }).then(
        () => acknowledged.push(n),
        () => undefined,
      )
      await pause(controlMs)
    }
  })()
  return async (): Promise<{ readonly acknowledged: number; readonly lost: readonly number[] }> => {
    stopped = true
    await writing
    const there = new Set((await kept.find().toArray()).map(({ _id }) => _id))
    await client.close()
    return { acknowledged: acknowledged.length, lost: acknowledged.filter(n => !there.has(n)) }
  }
}

export type Scene = Load & {
  readonly cluster: Cluster
  readonly server: Server
  /** Between the processes and the store. */
  readonly network: Proxy
}

/** Skipped, with the reason, where there is no server that may be killed. */
export async function faultScenario(
  test: Test,
  what: string,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const title = `${size.runs} runs: ${what}`
  const store = await openStore()
  if ('why' in store || !store.server) {
    const why = 'why' in store ? store.why : 'MONGODB_URL names a server that is not ours to harm'
    test.skip(`${title} (${why})`, () => undefined)
    return
  }
  const { server, database } = store
  test(title, async () => {
    const network = await startProxy(() => [server.port])
    const url = new URL(database.url)
    url.port = String(network.port)
    // The server would tell its clients where else it can be reached.
    url.search = 'directConnection=true'
    try {
      const cluster = await startCluster(url.href, ['api', 'api', 'worker', 'worker'], settings)
      const control = await controlOn(server.url)
      let followers: readonly Follower[] = []
      const playing = playRuns(
        cluster,
        load => {
          followers = load.followers
          return act({ ...load, cluster, server, network })
        },
        size,
      )
      // Whatever happens, what the store itself lost is told first: it is no fault of the product.
      const [, { acknowledged, lost }] = await Promise.all([
        playing.catch(async (error: unknown) => {
          // The store may be down at this moment, too: that must not hide what went wrong.
          const why = (failure: unknown) => `not to be had: ${(failure as Error).message}`
          const kept = await control().then(
            told => `lost ${told.lost.length} of ${told.acknowledged}`,
            why,
          )
          const runs = await toldOf(database, cluster.orgId, followers).catch(why)
          const message = (error as Error).message
          throw new Error(
            `${message}\nAcknowledged writes of the client beside it: ${kept}\n${runs}`,
            { cause: error },
          )
        }),
        playing.then(control, () => ({ acknowledged: 0, lost: [] })),
      ])
      assert.ok(acknowledged > 50, `${acknowledged} writes beside it`)
      assert.equal(lost, [], 'the store kept what it acknowledged')
    } finally {
      await endClusters()
      await network.close()
    }
  })
  test.after(store.close)
}
