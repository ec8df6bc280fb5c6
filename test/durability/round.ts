// One round: a server of its own, 200 runs with their clients, something that befalls them, and what must hold afterwards.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { endProcesses, freePort, signUp, startProcess, type Process } from '../kit/process.ts'
import { sameRuns, verifiesClean } from './checks.ts'
import { createClient, pause, type Client, type Follower } from './client.ts'
import { checkRun, live, modelsUrl, wishOf } from './load.ts'

const runsCount = 200, credits = 10_000
/** So many are started at once; the others come one after another while things go wrong. */
const startedAtOnce = 140, everyMs = 20
/** Nobody sees anything for so long: whatever has not ended by then never will. */
const standstillMs = 25_000

export type Env = Readonly<Record<string, string>>
export type Round = {
  readonly env: Env
  readonly followers: readonly Follower[]
  server(): Process
  /** SIGKILL, and another process on the same data, with other settings perhaps. */
  restart(changed?: Env): Promise<void>
  /** Until so many runs are in mid-stream and have come further than at the last time. Answers how many. */
  midStream(least: number): Promise<number>
  /** Until more runs have just ended: others that began with them are on the last steps of theirs. Answers how many live. */
  ending(more: number): Promise<number>
}

const opened: { readonly client: Client; readonly dataDir: string }[] = []
/** For `test.after`. */
export async function endRounds(): Promise<void> {
  for (const { client } of opened) client.close()
  await endProcesses()
  for (const { dataDir } of opened) rmSync(dataDir, { recursive: true, force: true })
}

/** Its environment, for a test that does something else with a server. */
export async function open(settings: Env) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-chaos-'))
  const env: Env = { DATA_DIR: dataDir, PORT: String(await freePort()), MODELS_URL: modelsUrl, LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000', RUNS_LEASE_MS: '400', RUNS_SWEEP_MS: '100', ...settings }
  const server = await startProcess(env), { token, orgId } = await signUp(server.base, env, credits), client = createClient(server.base, token)
  opened.push({ client, dataDir })
  return { env, server, client, orgId }
}

const seenBy = (followers: readonly Follower[]) => followers.reduce((sum, { frames }) => sum + frames.size, 0)
/** Rejects when nothing comes any more. Keeps no process alive. */
async function standstill(followers: readonly Follower[]): Promise<never> {
  for (let before = -1; before !== seenBy(followers);) {
    before = seenBy(followers)
    await setTimeout(standstillMs, undefined, { ref: false })
  }
  throw new Error(`Nothing comes any more; these never ended: ${followers.filter(({ ended }) => !ended).map(({ key, runId }) => `${key} (${runId})`)}`)
}

export async function playRound(settings: Env, befalls: (round: Round) => Promise<void>, whose: { readonly others?: boolean } = {}): Promise<void> {
  const { env, server: first, client } = await open(settings), followers: Follower[] = []
  let server = first, seenBefore = 0
  const wishes = Array.from({ length: runsCount }, (_, i) => wishOf(`key-${i}`, i)), wishBy = new Map(wishes.map(wish => [wish.key, wish]))
  const living = Promise.all(wishes.map(async (wish, i) => {
    await pause(Math.max(0, i - startedAtOnce) * everyMs)
    const { follower, over } = await live(client, wish)
    followers.push(follower)
    await over
  }))
  let failed = false
  living.catch(() => { failed = true })
  const reading = () => followers.filter(({ ended, last }) => !ended && last > 0).length, ended = () => followers.filter(one => one.ended).length
  /** Or until there is nothing more to wait for. */
  const until = async (holds: () => boolean): Promise<number> => {
    while (!failed && ended() < runsCount && !holds()) await pause(5)
    seenBefore = seenBy(followers)
    return reading()
  }
  const befallen = befalls({
    env, followers,
    server: () => server,
    async restart(changed = {}) {
      await server.kill('SIGKILL')
      server = await startProcess({ ...env, ...changed })
    },
    midStream: least => until(() => reading() >= least && seenBy(followers) >= seenBefore + least),
    ending(more) {
      const before = ended()
      return until(() => ended() >= before + more)
    },
  })
  await Promise.race([Promise.all([befallen, living]), standstill(followers)])

  const costs = await Promise.all(followers.map(follower => checkRun(client, follower, wishBy.get(follower.key)!)))
  assert.is(new Set(followers.map(({ runId }) => runId)).size, runsCount, 'no two keys mean one run')
  assert.equal([...new Set(costs)], [1], 'each costs its one credit')
  assert.equal(await client.balance(), { balance: credits - runsCount, held: 0, available: credits - runsCount }, 'each was charged once, and nothing is held')
  await sameRuns(client, followers, key => wishBy.get(key)!.request)
  await verifiesClean(env, runsCount, whose)
}
