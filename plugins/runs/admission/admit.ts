// Admits a run, in an order in which each crash point is safe: insert the run, hold the credits,
// take the place in the session.
import type { RunStart } from '#contracts/runs.ts'
import { fault, hasCode, isFault, type Caller, type KernelInfo } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'
import type { Texts } from '../journal/texts.ts'
import { enqueue, type Placed } from '../sessions/enqueue.ts'
import { unstick, withdraw } from '../sessions/session-queue.ts'
import { earlierRun } from './idempotency.ts'
import { createPrepare, type PrepareDeps } from './prepare.ts'
import type { Slots } from './slots.ts'

/** `mine`: this call made the placement, so it begins the run. */
export type Admission = {
  readonly run: Run
  readonly placed: Placed
  readonly resumed: boolean
  readonly mine: boolean
}
type Deps = PrepareDeps & {
  store: ScopedStorage
  billing: Ledger
  owner: string
  host: KernelInfo
  slots: Slots
  texts: Texts
}

export function createAdmit(deps: Deps) {
  const { store, billing, clock, owner, host, config, slots, texts } = deps
  const prepare = createPrepare(deps)

  /** Removes a run that never started. */
  const drop = async (run: Run, own: Store): Promise<void> => {
    if (await own.remove(Runs, run.id, { if: { phase: 'admitting' } })) await texts.remove(run)
  }

  /** A full disk may lose the insert or a later write. No further write may follow then. */
  const requireEpoch = (epoch: number): void => {
    if (store.epoch() !== epoch) throw fault('STORAGE_FULL')
  }
  const holdCredits = async (run: Run, own: Store, epoch: number): Promise<void> => {
    try {
      requireEpoch(epoch)
      await billing.hold(run.orgId, { of: run.id, amount: run.hold })
    } catch (error) {
      // Nothing started, so the key is freed. The same request may come again when there are
      // credits.
      if (hasCode(error, 'INSUFFICIENT_CREDITS')) await drop(run, own)
      throw error
    }
  }
  const takePlace = async (run: Run, own: Store, epoch: number): Promise<Placed> => {
    try {
      requireEpoch(epoch)
      return await enqueue(own, run, { queueMax: config.queue_max, now: clock.now() })
    } catch (error) {
      // A storage failure refuses nothing: the sweep, or the same request, continues from here.
      if (isFault(error) && error.status < 500) {
        await billing.release(run.orgId, { of: run.id, reason: 'not placed' })
        await drop(run, own)
      }
      throw error
    }
  }
  /** Writes the place into the run. Undefined where the run is no longer being admitted. */
  const recordPlace = (run: Run, own: Store, placed: Placed): Promise<Run | undefined> => {
    // A process that drives runs takes the lease in the same write.
    const starts = placed.status === 'running' && host.role !== 'api'
    return own.update(
      Runs,
      run.id,
      {
        set: {
          phase: 'placed',
          status: placed.status,
          placedAs: placed.status,
          queueSeq: placed.queueSeq,
          ...(starts ? { owner, epoch: 1, beat: 1 } : {}),
        },
      },
      { if: { phase: 'admitting' } },
    )
  }

  /** Continues an admission from wherever it stands; every step may be repeated. */
  const proceed = async (
    run: Run,
    own: Store,
    resumed: boolean,
    fresh: boolean,
    epoch = store.epoch(),
  ): Promise<Admission> => {
    if (run.phase !== 'admitting')
      return {
        run,
        resumed,
        mine: false,
        placed: { status: run.placedAs ?? 'running', queueSeq: run.queueSeq ?? 0 },
      }
    // The hold has ended: a crash interrupted a refusal. The refusal is completed, not undone.
    if (!fresh && (await billing.entry(run.orgId, `end:${run.id}`))) {
      await drop(run, own)
      throw fault('CONFLICT', { why: 'this request was refused; send it again' })
    }
    await holdCredits(run, own, epoch)
    const placed = await takePlace(run, own, epoch)
    const updated = await recordPlace(run, own, placed)
    if (updated) return { run: updated, placed, resumed, mine: true }
    // Another process finished this admission, and perhaps the run. The place that was just taken
    // must not outlive the run.
    const other = await own.get(Runs, run.id)
    if (other?.phase !== 'placed') await withdraw(own, run)
    await unstick(own, run.sessionId, clock.now())
    if (!other) throw fault('CONFLICT', { why: 'the run was refused while it was being admitted' })
    return proceed(other, own, resumed, false)
  }

  return {
    /** Throws INSUFFICIENT_CREDITS, NOT_FOUND, INVALID_FIELD, IDEMPOTENCY_MISMATCH, QUEUE_FULL. */
    async admit(caller: Caller, request: RunStart, trace?: string): Promise<Admission> {
      const own = store.tenant(caller)
      if (request.idempotency_key !== undefined) {
        const known = await earlierRun(caller, request, own)
        if (known) return proceed(known, own, true, false)
      }
      const arrive = slots.admit(caller.orgId)
      try {
        const asked = await prepare(caller, request, own, trace)
        const epoch = store.epoch()
        const run = await texts.stored(asked)
        try {
          await own.insert(Runs, run)
        } catch (error) {
          // Texts are removed only where the run was surely not stored. Any other failure may have
          // stored it all the same.
          if (hasCode(error, 'DUPLICATE')) await texts.remove(run)
          const known =
            hasCode(error, 'DUPLICATE') && run.idempotencyKey !== undefined
              ? await earlierRun(caller, request, own)
              : undefined
          if (known) return await proceed(known, own, true, false)
          throw error
        }
        return await proceed(run, own, false, true, epoch)
      } finally {
        arrive()
      }
    },
    /** Lets the sweep continue an admission that a crash interrupted. */
    resume: (run: Run) => proceed(run, store.tenant(run), true, false),
  }
}
export type Admit = ReturnType<typeof createAdmit>
