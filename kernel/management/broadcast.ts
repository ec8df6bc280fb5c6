// What one process tells the others that share its storage, by a stream of the event log: they
// follow it from where it ends.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { Json } from '#ports/token.ts'
import type { Broadcasting } from '../kernel-ports.ts'

/** Names of an organisation's streams begin with its id: this is none of them. */
const stream = 'peers'
/** Hints that are kept; older ones are of no use to anybody. */
const keptHints = 1000
const retryMs = 1000

type Parts = {
  readonly eventlog: EventlogEngine
  readonly clock: Clock
  readonly log: Log
  /** Nobody else can be there. */
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
