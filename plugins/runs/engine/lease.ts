// Who may take a run: one rule for every driver.
import type { KernelInfo } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'

type Seen = { readonly epoch: number; readonly beat: number; readonly since: number }
export type Lease = ReturnType<typeof createLease>

/**
 * Runs of other drivers whose beat is remembered, about 150 bytes each. A run beyond this number
 * counts as seen for the first time.
 */
const seenMax = 100_000

export function createLease({
  store,
  clock,
  host,
  owner,
  config,
}: {
  store: ScopedStorage
  clock: Clock
  host: KernelInfo
  owner: string
  config: RunsConfig
}) {
  const beats = new Map<string, Seen>()
  /**
   * Runs that this driver dropped without an end. The driver takes such a run again only after the
   * time of a lease, so that the cause may go away.
   */
  const broken = new Set<string>()

  /**
   * Whether the beat has not moved for `ms`, by this process's own steady clock. Clocks of two
   * processes are never compared.
   */
  const stoodStill = (run: Run, ms: number): boolean => {
    const seen = beats.get(run.id)
    const now = clock.monotonic()
    if (seen?.epoch === run.epoch && seen.beat === run.beat) return now - seen.since > ms
    beats.set(run.id, { epoch: run.epoch, beat: run.beat, since: now })
    if (beats.size > seenMax) beats.delete(beats.keys().next().value!)
    return false
  }
  return {
    stoodStill,
    /**
     * A run is free when nobody has it, when this driver has it, or when its driver is dead. Where
     * no other process can exist, a foreign owner is dead at once; else when its beat stood still.
     * A living driver keeps its run, whoever asks.
     */
    isFree: (run: Run): boolean =>
      run.owner === undefined ||
      (run.owner === owner && !broken.has(run.id)) ||
      (store.exclusive && !run.owner.startsWith(host.processId)) ||
      stoodStill(run, config.lease_ms),
    taken: (runId: string): void => void broken.delete(runId),
    /**
     * This driver no longer works on the run. Where it could neither end the run nor release the
     * lease, the lease still names it.
     */
    dropped: (runId: string): void => void broken.add(runId),
    /** Forgets runs that are not open any more. */
    keepOnly(open: ReadonlySet<string>): void {
      for (const id of [...beats.keys(), ...broken])
        if (!open.has(id)) {
          beats.delete(id)
          broken.delete(id)
        }
    },
  }
}
