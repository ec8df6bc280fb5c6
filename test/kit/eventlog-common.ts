// What the parts of the event log's kit share.
import type { EventlogEngine, LoggedEvent, NewEvent } from '#ports/eventlog.ts'

export type On = (title: string, run: (log: EventlogEngine) => Promise<void>) => void

export const event = (n: number): NewEvent => ({ type: 'delta', data: { n } })
export const events = (count: number, from = 1): NewEvent[] => Array.from({ length: count }, (_, n) => event(from + n))
export const seqs = (list: readonly LoggedEvent[]) => list.map(({ seq }) => seq)

/** Follows until `last` has come, then stops by leaving the loop. */
export async function followTo(log: EventlogEngine, stream: string, last: number, after = 0): Promise<LoggedEvent[]> {
  const found: LoggedEvent[] = []
  const { signal } = new AbortController()
  for await (const batch of log.follow(stream, { after, signal })) {
    found.push(...batch)
    if (found.at(-1)!.seq >= last) break
  }
  return found
}
