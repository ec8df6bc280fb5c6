// The end of a run, in an order in which each crash point is safe: usage → ledger → terminal event → the session's next → closed.
import { hasCode } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { Store } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'
import { ending, event, type Ending, type Journal } from '../journal.ts'
import { creditsFor } from '../price.ts'
import { leave } from './place.ts'

/** The stored answer; what is longer is cut here and whole in the stream. A document has a limit of its own. */
const answerCharsMax = 300_000

/** Takes the credits once. The ledger knows: whatever stands there under this run is the truth, whoever wrote it. */
async function charge(billing: Ledger, run: Run, credits: number): Promise<number> {
  try {
    const { amount } = await billing.capture(run.orgId, { of: run.id, amount: Math.min(credits, run.hold), reason: `run ${run.id}` })
    return -amount
  } catch (error) {
    if (!hasCode(error, 'LEDGER_MISMATCH')) throw error
    const entry = await billing.entry(run.orgId, `end:${run.id}`)
    return entry ? -entry.amount : 0
  }
}

export type Settling = { readonly own: Store; readonly billing: Ledger; readonly clock: Clock; readonly journal: Journal; readonly run: Run }

/** Answers the run that is next in the session. May be repeated from any point. */
export async function settle({ own, billing, clock, journal, run }: Settling, proposed: Ending): Promise<string | undefined> {
  const { state } = journal
  const { terminal, usage } = state.ending ?? proposed
  const credits = terminal.type === 'error' ? 0 : Math.min(run.hold, creditsFor(run.price, usage))
  if (!state.ending) {
    journal.write(ending({ terminal, usage }), event('usage', { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens, total_tokens: usage.inputTokens + usage.outputTokens, credits, model: run.model }))
    await journal.settled()
  }
  const charged = await charge(billing, run, credits)
  if (!state.terminal) {
    journal.write(terminal.type === 'done' ? event('done', { status: terminal.status, session_id: run.sessionId }) : event('error', { code: terminal.code, detail: terminal.detail }))
    await journal.settled()
  }
  const status = terminal.type === 'error' ? 'failed' : terminal.status
  const next = await leave(own, run, { pause: status === 'failed', now: clock.now() })
  await own.update(Runs, run.id, { set: { phase: 'closed', status, endedAt: clock.now(), answer: state.text.slice(0, answerCharsMax), credits: charged }, unset: ['owner'] }, { if: { phase: 'placed', epoch: run.epoch } })
  return next
}
