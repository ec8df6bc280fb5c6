// Extends the hold of a run that needs more credits than were held. The credits are held before the
// next model call, not after it.
import { hasCode } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { Usage } from '#ports/models.ts'
import type { Run } from '../collections.ts'
import type { Journal } from './journal.ts'
import { held, holding } from './records.ts'
import { creditsFor } from '../price.ts'
import { heldBeyond, usageOf, type Part } from './state.ts'

export const partOf = (runId: string, part: string) => `${runId}:${part}`

const confirm = async (
  billing: Ledger,
  run: Run,
  journal: Journal,
  { part, amount }: Part,
): Promise<void> => {
  await billing.hold(run.orgId, { of: partOf(run.id, part), amount })
  journal.write(held({ part, amount }))
}

/**
 * Holds the credits that the next model call may need. The intent is in the journal before the
 * ledger changes, so that the end of the run knows what to free.
 * Throws INSUFFICIENT_CREDITS when there are not enough.
 */
export async function reserve(
  billing: Ledger,
  run: Run,
  journal: Journal,
  step: number,
  inputTokens: number,
): Promise<void> {
  const { state } = journal
  for (const part of state.parts) if (!part.held) await confirm(billing, run, journal, part)
  const spent = usageOf(state)
  const next: Usage = {
    inputTokens: spent.inputTokens + inputTokens,
    outputTokens: spent.outputTokens + run.terms.outputTokensMax,
  }
  const missing = creditsFor(run.price, next) - run.hold - heldBeyond(state)
  if (missing <= 0 || step === 0) return
  journal.write(holding({ part: `step${step}`, amount: missing }))
  await journal.settled()
  await confirm(billing, run, journal, state.parts.at(-1)!)
}

/**
 * Frees the hold of a run that was never driven and never will be. May be repeated, also after the
 * run's end.
 */
export async function giveBack(
  billing: Ledger,
  { orgId, id: of }: Pick<Run, 'orgId' | 'id'>,
): Promise<void> {
  if (!(await billing.entry(orgId, `hold:${of}`)) || (await billing.entry(orgId, `end:${of}`)))
    return
  await billing
    .release(orgId, { of, reason: 'removed with its conversation' })
    .catch((error: unknown) => {
      if (!hasCode(error, 'LEDGER_MISMATCH')) throw error
    })
}

/**
 * Ends every part of the hold: captures the share of `credits` that the first hold did not cover,
 * and frees the rest. May be repeated from any point.
 */
export async function endParts(
  billing: Ledger,
  run: Run,
  parts: readonly Part[],
  credits: number,
): Promise<number> {
  let left = credits
  let taken = 0
  for (const { part, amount, held: isHeld } of parts) {
    const of = partOf(run.id, part)
    const share = isHeld ? Math.min(left, amount) : 0
    left -= share
    // A hold of 0 takes the key of a hold that was never made. A former driver that still runs
    // cannot make that hold any more.
    if (!isHeld)
      await billing.hold(run.orgId, { of, amount: 0 }).catch((error: unknown) => {
        if (!hasCode(error, 'LEDGER_MISMATCH')) throw error
      })
    taken -= (await billing.capture(run.orgId, { of, amount: share, reason: `run ${run.id}` }))
      .amount
  }
  return taken
}
