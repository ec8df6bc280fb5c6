// Settles a run, in an order in which each crash point is safe: usage → ledger → terminal event →
// the session's next run → closed.
import { hasCode } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { Store } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'
import { creditsOf, outcomeOf } from '../journal/outcome.ts'
import type { RunMetrics } from '../telemetry/metrics.ts'
import type { Journal } from '../journal/journal.ts'
import { ending, event, type Ending } from '../journal/records.ts'
import type { Step } from '../journal/state.ts'
import type { Texts } from '../journal/texts.ts'
import { endParts } from '../journal/hold.ts'
import { leave } from '../sessions/session-queue.ts'

/**
 * Captures the credits once. Where the ledger has an end for this run already, that entry counts,
 * whoever wrote it.
 */
async function charge(billing: Ledger, run: Run, credits: number): Promise<number> {
  try {
    const { amount } = await billing.capture(run.orgId, {
      of: run.id,
      amount: Math.min(credits, run.hold),
      reason: `run ${run.id}`,
    })
    return -amount
  } catch (error) {
    if (!hasCode(error, 'LEDGER_MISMATCH')) throw error
    const entry = await billing.entry(run.orgId, `end:${run.id}`)
    return entry ? -entry.amount : 0
  }
}

/**
 * Whether the step's model call was made. It may not have been: the credits ran out, or the run was
 * stopped.
 */
const wasMade = ({ accepted, asked, shown, attempt, calls, open }: Step): boolean =>
  accepted !== undefined ||
  asked !== undefined ||
  shown ||
  attempt > 1 ||
  calls.length > 0 ||
  open !== undefined

export type Settling = {
  readonly own: Store
  readonly billing: Ledger
  readonly clock: Clock
  readonly journal: Journal
  readonly run: Run
  readonly texts: Texts
  readonly metrics: Pick<RunMetrics, 'ended'>
  /** Tells the search index that the run has ended. */
  readonly note: (run: Run) => void
  /** Wakes the run that is next in the session. */
  readonly wake: (runId: string) => Promise<void>
  /** How long after the end its log may be compacted, in milliseconds. */
  readonly compactAfterMs: number
}

/**
 * May be repeated from any point. The run is closed last. Until then the sweep comes back to it, so
 * that the session's next run is not forgotten.
 */
export async function settle(
  { own, billing, clock, journal, run, wake, compactAfterMs, metrics, texts, note }: Settling,
  proposed: Ending,
): Promise<void> {
  const { state } = journal
  const decided = state.ending ?? proposed
  const { terminal, usage } = decided
  const credits = creditsOf(run, state, decided)
  if (!state.ending) {
    const { inputTokens, outputTokens } = usage
    journal.write(
      ending(decided),
      event('usage', {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        total_tokens: inputTokens + outputTokens,
        credits,
        model: run.model,
        model_calls: state.steps.filter(wasMade).length,
      }),
    )
    await journal.settled()
  }
  const first = await charge(billing, run, credits)
  const rest =
    state.parts.length > 0
      ? await endParts(billing, run, state.parts, credits - Math.min(credits, run.hold))
      : 0
  if (!state.terminal) {
    journal.write(
      terminal.type === 'done'
        ? event('done', { status: terminal.status, session_id: run.sessionId })
        : event('error', { code: terminal.code, detail: terminal.detail }),
    )
    await journal.settled()
  }
  const next = await leave(own, run, { pause: terminal.type === 'error', now: clock.now() })
  if (next) await wake(next)
  const outcome = outcomeOf(state, decided, first + rest, clock.now())
  const closed = await own.update(
    Runs,
    run.id,
    {
      set: {
        ...outcome,
        ...(await texts.answered(run, outcome.answer)),
        tidy: outcome.endedAt + compactAfterMs,
        unindexed: outcome.endedAt,
      },
      unset: ['owner', 'due', 'reply', 'replied'],
    },
    { if: { phase: 'placed', epoch: run.epoch } },
  )
  if (!closed) return
  metrics.ended(outcome.status)
  note(closed)
}
