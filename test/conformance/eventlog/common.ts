// What the parts of the event log's kit share.
import assert from 'node:assert/strict'
import type { EventlogEngine, LoggedEvent, NewEvent } from '#ports/eventlog.ts'

export type On = (title: string, run: (log: EventlogEngine) => Promise<void>) => void

export const event = (n: number): NewEvent => ({ type: 'delta', data: { n } })
export const events = (count: number, from = 1): NewEvent[] =>
  Array.from({ length: count }, (_, n) => event(from + n))
export const range = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n)
export const seqs = (list: readonly LoggedEvent[]) => list.map(({ seq }) => seq)

/** The event of that seq, which is the log's last, as the follower is handed it. */
export async function readUpTo(
  follower: AsyncIterator<readonly LoggedEvent[]>,
  seq: number,
): Promise<LoggedEvent> {
  for (;;) {
    const { value } = await follower.next()
    const last = (value as readonly LoggedEvent[]).at(-1)!
    if (last.seq >= seq) return last
  }
}

/** Follows until `last` has come, then stops by leaving the loop. */
export async function followTo(
  log: EventlogEngine,
  stream: string,
  last: number,
  after = 0,
): Promise<LoggedEvent[]> {
  const found: LoggedEvent[] = []
  const { signal } = new AbortController()
  for await (const batch of log.follow(stream, { after, signal })) {
    found.push(...batch)
    if (found.at(-1)!.seq >= last) break
  }
  return found
}

/**
 * What one of two engines on the same log appends, the other follows: each event once, in order,
 * whenever the follower began.
 */
export async function followedAcross(one: EventlogEngine, other: EventlogEngine): Promise<void> {
  const following = [followTo(other, 'a', 300), followTo(other, 'a', 300, 17)]
  for (let n = 0; n < 30; n++) {
    await one.append('a', events(10, n * 10))
    if (n === 15) following.push(followTo(other, 'a', 300))
  }
  const [whole, rest, late] = await Promise.all(following)
  const all = Array.from({ length: 300 }, (_, n) => n + 1)
  assert.deepEqual([seqs(whole!), seqs(rest!), seqs(late!)], [all, all.slice(17), all])
}
