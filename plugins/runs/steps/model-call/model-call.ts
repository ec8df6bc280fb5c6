// Brings a model call to its end. A call that broke off is continued or superseded, never silently
// changed.
import { fault, hasCode, isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Journal } from '../../journal/journal.ts'
import { attemptBegins, event, modelCallAccepted, type Plan } from '../../journal/records.ts'
import { currentStep, emptyStep, type Step } from '../../journal/state.ts'
import { attemptOf, lostBy, type ModelAttempting } from './model-attempt.ts'
import { differs, isDiffering, recoveryOf, type Recovery } from './resume-plan.ts'

export type ModelCalling = ModelAttempting & {
  readonly clock: Clock
  readonly log: Log
  readonly terms: Parameters<typeof recoveryOf>[1]
  /** After so many broken-off tries without progress the call fails. */
  readonly triesMax: number
}
/** The first pause before another try; doubles each time. */
const backoffMs = 250
const backoffMsMax = 20_000

const mayRetry = (error: unknown) =>
  !isFault(error) || ['MODEL_FAILED', 'UNAVAILABLE'].includes(error.code)

/** Plans after whose failure another plan may succeed. */
const hasOther = (plan: Recovery['plan']): plan is Plan =>
  plan === 'resume' || plan === 'prefill' || plan === 'instruct' || plan === 'regenerate'

/** Accepts the complete tool calls of an answer that broke off. */
function acceptInterrupted(journal: Journal, calling: ModelCalling, step: Step): void {
  const { inputTokens, outputTokens } = lostBy(calling, step)
  journal.write(
    modelCallAccepted({
      step: step.index,
      attempt: step.attempt,
      finish: 'interrupted',
      input_tokens: inputTokens,
      output_tokens: outputTokens,
    }),
  )
}

/** Records a further try, and tells readers how much stays of what they were shown. */
function beginAgain(
  journal: Journal,
  calling: ModelCalling,
  step: Step,
  recovery: Recovery & { readonly plan: Plan },
  reason: 'failed' | 'interrupted',
): void {
  const again = attemptBegins({
    step: step.index,
    attempt: step.attempt + 1,
    plan: recovery.plan,
    keep: recovery.keep,
    lost: lostBy(calling, step),
  })
  const superseded = event('superseded', {
    step: step.index,
    attempt: step.attempt,
    keep: recovery.keep,
    reason,
  })
  if (step.shown || step.text !== '') journal.write(superseded, again)
  else journal.write(again)
}

/** The error of a call that has no tries left. */
const exhausted = (error: unknown): unknown =>
  hasCode(error, 'UNAVAILABLE')
    ? fault('MODEL_FAILED', { why: error.message }, { cause: error })
    : error

/** Waits before another try: longer after each, and at least as long as the provider asks for. */
async function backOff(
  { clock, cancellation }: ModelCalling,
  tries: number,
  error: unknown,
): Promise<void> {
  const pause = Math.min(backoffMsMax, backoffMs * 2 ** tries) * (0.5 + clock.random() / 2)
  // The silence during this pause is not the model's.
  cancellation.pause()
  await clock.sleep(
    Math.max(pause, hasCode(error, 'MODEL_FAILED') ? (error.retryAfterMs ?? 0) : 0),
    cancellation.renew(),
  )
  cancellation.touch()
}

/**
 * Brings the current step to its accepted end. Throws the abort's reason, MODEL_FAILED after too
 * many tries, MODEL_REFUSED, or STREAM_MOVED.
 */
export async function callModel(
  journal: Journal,
  calling: ModelCalling,
  number: number,
): Promise<void> {
  const { log, cancellation, terms, triesMax } = calling
  const without = new Set<Plan>()
  for (let broke = false; ; broke = true) {
    const step = currentStep(journal.state) ?? emptyStep(number, 'answer')
    const found = recoveryOf(step, { ...terms, without })
    const recovery: Recovery =
      broke && found.plan === 'begin' ? { plan: 'restart', keep: 0 } : found
    const { plan, keep } = recovery
    if (plan === 'end') throw differs()
    if (plan === 'accept') return acceptInterrupted(journal, calling, step)
    // What is journalled from here on changes the step.
    const before = { ...step }
    if (plan !== 'begin')
      beginAgain(journal, calling, step, { plan, keep }, broke ? 'failed' : 'interrupted')
    const attempt = plan === 'begin' ? before.attempt : before.attempt + 1
    try {
      return await attemptOf(journal, calling, before, recovery, attempt)
    } catch (error) {
      if (journal.failure()) throw journal.failure()
      const isRefused = hasCode(error, 'MODEL_REFUSED')
      // The provider lost the answer that it kept, refuses a prefill or instruction, or answers
      // differently. The next try uses another plan.
      const another = hasOther(plan) && (plan === 'resume' || isRefused || isDiffering(error))
      if (another) without.add(plan)
      if (cancellation.stopped() !== undefined || !(mayRetry(error) || (another && isRefused)))
        throw error
      if (journal.state.tries + 1 >= triesMax) throw exhausted(error)
      log('warn', 'model.broke', { step: number, attempt, error })
      await backOff(calling, journal.state.tries, error)
    }
  }
}
