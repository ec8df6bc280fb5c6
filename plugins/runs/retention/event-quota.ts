// Bounds the bytes of events that each organisation's ended runs keep. Beyond the bound the oldest
// runs lose their events, except for their ends.
import { hasCode } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Eventlog, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { EventBytes, Runs, streamOf, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'

export const crowdingReason =
  'retention: organisations whose ended runs keep more events than they may'
/** The record of the end is searched in so many events at the end of a log. */
const tailEvents = 200
const endTypes = ['ending@1', 'usage', 'done', 'error']
/**
 * Removal goes on down to this share of the bound, so that not every further run causes a new
 * count.
 */
const roomShare = 0.9

export type Freed = { readonly events: number; readonly bytes: number }
type Scope = { readonly orgId: string }
type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  config: RunsConfig
  log: Log
  signal: AbortSignal
}
export type EventQuota = ReturnType<typeof createEventQuota>

/**
 * Removes all events but the end. A reader still learns how the run ended, and that the rest is
 * gone. `bytes`: what the events took, where that is known.
 */
export async function trimToEnd(
  log: Eventlog,
  stream: string,
  bytes: number | undefined,
): Promise<Freed> {
  const { first, last } = await log.bounds(stream)
  const tail = await log.read(stream, { after: Math.max(0, last - tailEvents), limit: tailEvents })
  const end = tail.find(({ type }) => endTypes.includes(type))
  if (!end || end.seq <= first) return { events: 0, bytes: 0 }
  const kept = Buffer.byteLength(JSON.stringify(tail.filter(({ seq }) => seq >= end.seq)))
  const before = bytes ?? (await bytesOf(log, stream))
  await log.trim(stream, end.seq - 1)
  return { events: end.seq - first, bytes: Math.max(0, before - kept) }
}
async function bytesOf(log: Eventlog, stream: string): Promise<number> {
  let sum = 0
  for (
    let page = await log.read(stream, { limit: 1000 });
    page.length > 0;
    page = await log.read(stream, { after: page.at(-1)!.seq, limit: 1000 })
  )
    sum += Buffer.byteLength(JSON.stringify(page))
  return sum
}

export function createEventQuota({ store, eventlog, config, log, signal }: Deps) {
  const keptBytesMax = config.events_bytes_max_per_org
  /**
   * Changes an organisation's count. Call it before a run records its bytes, and after a run has
   * recorded that it keeps none.
   * So the count may be too high, and is then counted anew, but never too low.
   */
  const count = async (scope: Scope, by: number): Promise<void> => {
    const own = store.tenant(scope)
    const add = () => own.update(EventBytes, scope.orgId, { inc: { bytes: by } })
    if (by === 0 || (await add())) return
    await own
      .insert(EventBytes, { id: scope.orgId, orgId: scope.orgId, bytes: Math.max(0, by) })
      .catch(async (error: unknown) => {
        if (!hasCode(error, 'DUPLICATE')) throw error
        await add()
      })
  }
  /** The runs of an organisation that keep events, the oldest end first, in pages. */
  async function* keeping(scope: Scope): AsyncGenerator<Run> {
    for (let after: string | undefined; ; ) {
      const page = await store.tenant(scope).find(Runs, {
        where: { keptSince: { gt: 0 } },
        orderBy: ['keptSince', 'asc'],
        limit: 100,
        ...(after === undefined ? {} : { after }),
      })
      yield* page.items
      if (page.next === undefined) return
      after = page.next
    }
  }
  /**
   * Removes the run's events because of their age or their size. Undefined: another process came
   * first.
   */
  const forget = async (run: Run): Promise<Freed | undefined> => {
    const freed = await trimToEnd(eventlog.tenant(run), streamOf(run.id), run.keptBytes)
    if (run.keptSince === undefined) return freed
    if (
      !(await store
        .tenant(run)
        .update(
          Runs,
          run.id,
          { unset: ['keptBytes', 'keptSince'] },
          { if: { phase: 'closed', keptSince: run.keptSince } },
        ))
    )
      return undefined
    await count(run, -(run.keptBytes ?? 0))
    return freed
  }
  const relieve = async (scope: Scope, note: (freed: Freed) => void): Promise<void> => {
    const own = store.tenant(scope)
    const counted = (await own.get(EventBytes, scope.orgId))?.bytes ?? 0
    let bytes = 0
    for await (const run of keeping(scope)) bytes += run.keptBytes ?? 0
    // Bytes that were added meanwhile may or may not be in the sum. In that case the next pass
    // counts anew.
    await own.update(EventBytes, scope.orgId, { set: { bytes } }, { if: { bytes: counted } })
    if (bytes <= keptBytesMax) return
    for await (const run of keeping(scope)) {
      if (bytes <= keptBytesMax * roomShare || signal.aborted) return
      const freed = await forget(run)
      bytes -= run.keptBytes ?? 0
      if (freed) note(freed)
    }
  }
  return {
    count,
    forget,
    /**
     * Brings every organisation back within the bound. Runs under way, and runs whose logs are not
     * compacted yet, are never touched.
     */
    async relieveAll(note: (freed: Freed) => void): Promise<void> {
      if (keptBytesMax === 0) return
      const { items } = await store.system(crowdingReason).find(EventBytes, {
        where: { bytes: { gt: keptBytesMax } },
        orderBy: ['bytes', 'desc'],
        limit: 100,
      })
      for (const { orgId } of items)
        await relieve({ orgId }, note).catch((error: unknown) =>
          log('warn', 'retention', { organisation: orgId, error }),
        )
    },
  }
}
