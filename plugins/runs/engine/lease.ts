// Who may take a run: one rule, for everybody who wants to drive it.
import type { KernelInfo } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'

type Seen = { readonly epoch: number; readonly beat: number; readonly since: number }
export type Lease = ReturnType<typeof createLease>

/**
 * Runs of others whose beat is remembered, about 150 bytes each: what is beyond them is seen for
 * the first time again.
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
   * Runs of this driver that it dropped without an end: whatever was in its way gets the time of a
   * lease to go away.
   */
  const broken = new Set<string>()

  /**
   * The beat has not moved for so long, by this process's own steady clock: no two clocks are
   * compared.
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
     * Nobody has it, this driver has it, or whoever has it is dead: at once where no other process
     * can be, else when its beat stood still. A living driver keeps its run, whoever asks.
     */
    isFree: (run: Run): boolean =>
      run.owner === undefined ||
      (run.owner === owner && !broken.has(run.id)) ||
      (store.exclusive && !run.owner.startsWith(host.processId)) ||
      stoodStill(run, config.lease_ms),
    taken: (runId: string): void => void broken.delete(runId),
    /**
     * This driver is not at work on the run any more. Where it could neither end it nor give its
     * lease back, the lease still names it.
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
