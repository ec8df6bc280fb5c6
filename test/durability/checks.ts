// What must hold of every run, whatever befell its server: told from what its client saw, from its
// log, and by `verify`.
import * as assert from 'uvu/assert'
import { commandLine } from '../support/process.ts'
import { isTerminal, seenIn, type Client, type Follower, type Seen } from './client.ts'

/** What the client saw is the run's whole log, seen once, and that ended once. Answers it. */
export async function sawItWhole(
  client: Client,
  { runId, key, frames, repeated }: Follower,
): Promise<Seen[]> {
  const log = await client.log(runId)
  assert.equal(log, [...frames], `${key}: what was seen is what the log holds, in order, whole`)
  assert.equal(repeated, [], `${key}: nothing was seen twice`)
  const seen = log.map(([, frame]) => seenIn(frame))
  const terminals = seen.filter(isTerminal)
  assert.equal(terminals, seen.slice(-1), `${key}: it ended once, and nothing followed`)
  assert.is(seen.filter(({ type }) => type === 'usage').length, 1, `${key}: one bill`)
  return seen
}

/** Each key still means the run that it meant, and asking costs nothing. */
export async function sameRuns(
  client: Client,
  followers: readonly Follower[],
  requestOf?: (key: string) => object,
): Promise<void> {
  const before = await client.balance()
  await Promise.all(
    followers.map(async ({ key, runId }) => {
      const again = await client.start(key, requestOf?.(key))
      assert.equal([again.run_id, again.resumed], [runId, true], key)
    }),
  )
  assert.equal(await client.balance(), before, 'repeating the keys cost nothing')
}

type Verified = { readonly ok: boolean; readonly runs: number; readonly told: unknown[] }
/** The operator's own check, in the living server. `others`: there may be runs of somebody else. */
export async function verifiesClean(
  env: Readonly<Record<string, string>>,
  runs: number,
  { others = false } = {},
): Promise<void> {
  // With exit code 1 it has printed what it found all the same.
  const {
    told,
    ok,
    runs: checked,
  } = await commandLine<Verified>(['verify'], env).catch((error: Error & { stdout?: string }) => {
    if (!error.stdout) throw error
    return JSON.parse(error.stdout) as Verified
  })
  assert.equal([told, ok], [[], true])
  assert.ok(checked === runs || (others && checked > runs), `${checked} runs`)
}
