// Drives runs: takes the lease, folds the journal, goes step by step, and lets go when told to.
import { fault, hasCode, isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run } from './collections.ts'
import type { RunsConfig } from './config.ts'
import { contextOf } from './context.ts'
import { createJournal, emptyState, readState, took, type Ending, type Journal } from './journal.ts'
import { estimateTokens } from './price.ts'
import { settle } from './steps/settle.ts'
import { think } from './steps/think.ts'

/** Why a driver is told to stop. At `handover` and `lost` it appends nothing more. */
export type StopReason = 'cancelled' | 'handover' | 'lost' | 'stalled'
/** `heardAt`: when the model last sent something, by the monotonic clock; infinite outside a model call. */
type Active = { readonly run: Run; readonly abort: AbortController; heardAt: number }
type Deps = { store: ScopedStorage; eventlog: ScopedEventlog; billing: Ledger; models: ModelProvider; clock: Clock; log: Log; owner: string; config: RunsConfig }

export function createDriver({ store, eventlog, billing, models, clock, log, owner, config }: Deps) {
  const { active_max: activeMax, stall_ms: stallMs } = config
  const active = new Map<string, Active>(), waiting: Run[] = []
  let closing = false, idle: (() => void) | undefined

  /** The ending that a stopped or failed call leads to; undefined: this driver has nothing more to say. */
  const endingAfter = (error: unknown, run: Run, journal: Journal, signal: AbortSignal, inputTokens: number): Ending | undefined => {
    const usage = { inputTokens, outputTokens: Math.ceil(journal.state.text.length / 4) }
    const failed = (code: string, detail: string): Ending => ({ terminal: { type: 'error', code, detail }, usage })
    if (journal.failure()) return undefined
    if (signal.aborted) {
      const reason = signal.reason as StopReason
      if (reason === 'cancelled') return { terminal: { type: 'done', status: 'cancelled' }, usage }
      return reason === 'stalled' ? failed('MODEL_FAILED', fault('MODEL_FAILED', { why: `it sent nothing for ${stallMs} ms` }).message) : undefined
    }
    if (isFault(error)) return failed(error.code, error.message)
    log('error', 'run.failed', { run: run.id, error })
    return failed('INTERNAL', fault('INTERNAL').message)
  }

  const answer = async (run: Run, journal: Journal, entry: Active): Promise<Ending | undefined> => {
    if (journal.state.ending) return journal.state.ending
    const signal = run.cancelAsked ? AbortSignal.abort('cancelled' satisfies StopReason) : entry.abort.signal
    const hear = () => { entry.heardAt = clock.monotonic() }
    const messages = await contextOf(store.tenant(run), run)
    try {
      signal.throwIfAborted()
      hear()
      const { usage } = await think(journal, { models, model: run.model, messages, reasoning: run.request.reasoning, signal, hear })
      return { terminal: { type: 'done', status: 'done' }, usage }
    } catch (error) {
      await journal.settled().catch(() => undefined)
      return endingAfter(error, run, journal, signal, estimateTokens(messages))
    } finally {
      entry.heardAt = Number.POSITIVE_INFINITY
    }
  }

  const drive = async (entry: Active, fresh: boolean): Promise<void> => {
    const { run, abort } = entry, events = eventlog.tenant(run), own = store.tenant(run)
    const state = fresh ? emptyState() : await readState(events, streamOf(run.id))
    if (state.epoch > run.epoch) return
    const journal = createJournal(events, streamOf(run.id), state)
    if (!state.terminal) journal.write(took(run.epoch))
    const ending = state.terminal ? { terminal: state.terminal, usage: state.ending?.usage ?? { inputTokens: 0, outputTokens: 0 } } : await answer(run, journal, entry)
    if (!ending) {
      if (abort.signal.reason === 'handover') await own.update(Runs, run.id, { unset: ['owner'] }, { if: { epoch: run.epoch, owner } })
      return
    }
    const next = await settle({ own, billing, clock, journal, run }, ending)
    if (next) await startNext(run, next)
  }

  const run = (run: Run, fresh: boolean) => {
    const entry: Active = { run, abort: new AbortController(), heardAt: Number.POSITIVE_INFINITY }
    active.set(run.id, entry)
    drive(entry, fresh).catch((error: unknown) => {
      // Another driver has it, or nothing can be written now: the sweep goes on when it can.
      if (!hasCode(error, 'STREAM_MOVED')) log('warn', 'run.left', { run: run.id, error })
    }).finally(() => {
      active.delete(run.id)
      const following = closing ? undefined : waiting.shift()
      if (following) void claim(following).catch((error: unknown) => log('warn', 'run.claim', { run: following.id, error }))
      if (active.size === 0) idle?.()
    })
  }

  /** Takes the lease and drives. False when it is somebody else's by now. */
  const claim = async (seen: Run): Promise<boolean> => {
    if (closing || active.has(seen.id)) return false
    if (active.size >= activeMax) {
      if (waiting.length < activeMax && !waiting.some(({ id }) => id === seen.id)) waiting.push(seen)
      return false
    }
    const taken = await store.tenant(seen).update(Runs, seen.id, { set: { owner, status: 'running' }, inc: { epoch: 1, beat: 1 } }, { if: { phase: 'placed', epoch: seen.epoch } })
    if (!taken) return false
    run(taken, false)
    return true
  }

  const startNext = async (before: Run, nextId: string) => {
    const next = await store.tenant(before).get(Runs, nextId)
    if (next?.phase === 'placed') await claim(next)
  }

  return {
    claim,
    startNext,
    isActive: (runId: string) => active.has(runId),
    counts: () => ({ active: active.size, waiting: waiting.length }),
    /** A run that this process has just placed, with its lease in hand and nothing in its journal. */
    begin(placed: Run) {
      if (active.size < activeMax && !closing) run(placed, true)
      else waiting.push(placed)
    },
    stop: (runId: string, reason: StopReason) => active.get(runId)?.abort.abort(reason),
    /** Moves each lease's beat; finds out which are lost, cancelled or stalled. */
    async beat(): Promise<void> {
      await Promise.all([...active.values()].map(async ({ run, abort, heardAt }) => {
        const now = clock.monotonic()
        const kept = await store.tenant(run).update(Runs, run.id, { inc: { beat: 1 } }, { if: { epoch: run.epoch, owner } }).catch(() => run)
        if (!kept) abort.abort('lost' satisfies StopReason)
        else if (kept.cancelAsked) abort.abort('cancelled' satisfies StopReason)
        else if (now - heardAt > stallMs) abort.abort('stalled' satisfies StopReason)
      }))
    },
    /** Gives every lease back, so that another process goes on at once. */
    async close(): Promise<void> {
      closing = true
      for (const { abort } of active.values()) abort.abort('handover' satisfies StopReason)
      if (active.size > 0) await new Promise<void>(done => { idle = done })
    },
  }
}
export type Driver = ReturnType<typeof createDriver>
