// One round: a server of its own, 200 runs with their clients, something that befalls them, and
// what must hold afterwards.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { endProcesses, freePort, signUp, startProcess, type Process } from '../support/process.ts'
import { sameRuns, verifiesClean } from './checks.ts'
import { createClient, pause, type Client, type Follower } from './client.ts'
import { checkRun, live, modelsUrl, wishOf } from './load.ts'

const credits = 10_000
/**
 * So many runs; so many of them are started at once, the others come one after another while things
 * go wrong.
 */
type Size = {
  readonly runs: number
  readonly atOnce: number
  readonly everyMs: number
  /** Nobody sees anything for so long: whatever has not ended by then never will. */
  readonly standstillMs: number
}
const usual: Size = { runs: 200, atOnce: 140, everyMs: 20, standstillMs: 25_000 }

export type Env = Readonly<Record<string, string>>
/** The runs and their readers, while something befalls them. */
export type Load = {
  readonly followers: readonly Follower[]
  /**
   * Until so many runs are in mid-stream and have come further than at the last time. Answers how
   * many.
   */
  midStream(least: number): Promise<number>
  /**
   * Until more runs have just ended: others that began with them are on the last steps of theirs.
   * Answers how many live.
   */
  ending(more: number): Promise<number>
}
export type Round = Load & {
  readonly env: Env
  server(): Process
  /** SIGKILL, and another process on the same data, with other settings perhaps. */
  restart(changed?: Env): Promise<void>
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
  const env: Env = {
    DATA_DIR: dataDir,
    PORT: String(await freePort()),
    MODELS_URL: modelsUrl,
    RUNS_DEATHS_MAX: '100',
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    RUNS_LEASE_MS: '400',
    RUNS_SWEEP_MS: '100',
    ...settings,
  }
  const server = await startProcess(env)
  const who = await signUp(server.base, env, credits)
  const { orgId } = who
  const client = createClient(server.base, who)
  opened.push({ client, dataDir })
  return { env, server, client, orgId }
}

const seenBy = (followers: readonly Follower[]) =>
  followers.reduce((sum, { frames }) => sum + frames.size, 0)
/** Rejects when nothing comes any more. Keeps no process alive. */
export async function standstill(followers: readonly Follower[], ms: number): Promise<never> {
  for (let before = -1; before !== seenBy(followers); ) {
    before = seenBy(followers)
    await setTimeout(ms, undefined, { ref: false })
  }
  throw new Error(
    `Nothing comes any more; of ${followers.length} that were started, these never ended: ` +
      `${followers.filter(({ ended }) => !ended).map(({ key, runId }) => `${key} (${runId})`)}`,
  )
}

type Played = {
  readonly client: Client
  /** Of a living process, for commands. */
  readonly env: Env
  /** Credits that the account began with. */
  readonly credits: number
}

/**
 * Runs of every kind with their readers, what befalls them meanwhile, and what must hold of all of
 * them afterwards.
 */
export async function playRuns(
  { client, env, credits: before }: Played,
  befalls: (load: Load) => Promise<void>,
  { others = false, ...given }: Partial<Size> & { readonly others?: boolean } = {},
): Promise<readonly Follower[]> {
  const size: Size = { ...usual, ...given }
  const followers: Follower[] = []
  let seenBefore = 0
  let failed = false
  const wishes = Array.from({ length: size.runs }, (_, i) => wishOf(`key-${i}`, i))
  const wishBy = new Map(wishes.map(wish => [wish.key, wish]))
  const living = Promise.all(
    wishes.map(async (wish, i) => {
      await pause(Math.max(0, i - size.atOnce) * size.everyMs)
      const { follower, over } = await live(client, wish)
      followers.push(follower)
      await over
    }),
  )
  living.catch(() => {
    failed = true
  })
  const reading = () => followers.filter(one => !one.ended && one.last > 0).length
  const ended = () => followers.filter(one => one.ended).length
  /** Or until there is nothing more to wait for. */
  const until = async (holds: () => boolean): Promise<number> => {
    while (!failed && ended() < size.runs && !holds()) await pause(5)
    seenBefore = seenBy(followers)
    return reading()
  }
  const befallen = befalls({
    followers,
    midStream: least => until(() => reading() >= least && seenBy(followers) >= seenBefore + least),
    ending(more) {
      const sofar = ended()
      return until(() => ended() >= sofar + more)
    },
  })
  await Promise.race([Promise.all([befallen, living]), standstill(followers, size.standstillMs)])

  const costs = await Promise.all(
    followers.map(follower => checkRun(client, follower, wishBy.get(follower.key)!)),
  )
  assert.is(
    new Set(followers.map(({ runId }) => runId)).size,
    size.runs,
    'no two keys mean one run',
  )
  assert.equal([...new Set(costs)], [1], 'each costs its one credit')
  assert.equal(
    await client.balance(),
    { balance: before - size.runs, held: 0, available: before - size.runs },
    'each was charged once, and nothing is held',
  )
  await sameRuns(client, followers, key => wishBy.get(key)!.request)
  await verifiesClean(env, size.runs, { others })
  return followers
}

export async function playRound(
  settings: Env,
  befalls: (round: Round) => Promise<void>,
  size: Partial<Size> & { readonly others?: boolean } = {},
): Promise<void> {
  const { env, server: first, client } = await open(settings)
  let server = first
  await playRuns(
    { client, env, credits },
    load =>
      befalls({
        ...load,
        env,
        server: () => server,
        async restart(changed = {}) {
          await server.kill('SIGKILL')
          server = await startProcess({ ...env, ...changed })
        },
      }),
    size,
  )
}
