// Hints between processes that share a storage. They travel in one stream of the event log, which
// each process follows from its end.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { Json } from '#ports/token.ts'
import type { Broadcasting } from '../kernel-ports.ts'

/** Cannot clash with an organisation's stream, whose name begins with the organisation's id. */
const stream = 'peers'
/** How many hints the stream keeps. Older ones help nobody. */
const keptHints = 1000
const retryMs = 1000

type Parts = {
  readonly eventlog: EventlogEngine
  readonly clock: Clock
  readonly log: Log
  /** The storage is this process's alone, so there are no others to tell. */
  readonly exclusive: boolean
}
type Hint = { readonly from: string; readonly data: Json }

export function createBroadcast({
  eventlog,
  clock,
  log,
  exclusive,
}: Parts): Broadcasting & { close(): void } {
  const self = clock.id()
  const ears = new Map<string, Set<(data: Json) => void>>()
  const closing = new AbortController()
  const hearing = async (): Promise<void> => {
    const { last } = await eventlog.bounds(stream)
    for await (const batch of eventlog.follow(stream, { after: last, signal: closing.signal }))
      for (const { type, data } of batch) {
        const { from, data: hint } = data as Hint
        if (from !== self) for (const act of ears.get(type) ?? []) act(hint)
      }
  }
  const listen = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await hearing().catch((error: unknown) => log('warn', 'peers.hear', { error }))
      await clock.sleep(retryMs, closing.signal).catch(() => undefined)
    }
  }
  const say = async (topic: string, data: Json): Promise<void> => {
    const last = await eventlog.append(stream, [{ type: topic, data: { from: self, data } }])
    if (last % keptHints === 0) await eventlog.trim(stream, last - keptHints)
  }
  if (!exclusive) void listen()
  return {
    publish(topic, data) {
      if (!exclusive)
        void say(topic, data).catch((error: unknown) => log('warn', 'peers.tell', { topic, error }))
    },
    subscribe(topic, act) {
      const acts = ears.get(topic) ?? new Set()
      ears.set(topic, acts.add(act))
      return () => void acts.delete(act)
    },
    close: () => closing.abort(),
  }
}
