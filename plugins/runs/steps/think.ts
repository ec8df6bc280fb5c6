// One model call, streamed into the journal. What broke off is continued or superseded, never silently changed.
import { fault, hasCode, isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ModelDelta, ModelProvider, ModelRequest, ToolCall, Usage } from '#ports/models.ts'
import { piecesOf } from '../bytes.ts'
import { continueInstruction, createSeam, recoveryOf, type Recovery } from '../recover.ts'
import type { Journal } from '../journal.ts'
import { attemptBegins, checkpointed, event, thought, toolOpen, toolWhole } from '../records.ts'
import { estimateTokens, tokensOf } from '../price.ts'
import { received, type ArgumentBounds } from '../tool-arguments.ts'
import { currentStep, emptyStep, type Step } from '../state.ts'
import type { Stopper } from '../stopper.ts'
import type { CallSpan, Traced } from '../traced.ts'

export type Thinking = {
  readonly models: ModelProvider
  readonly clock: Clock
  readonly log: Log
  readonly request: Omit<ModelRequest, 'signal' | 'prefill' | 'resume'>
  readonly terms: Parameters<typeof recoveryOf>[1]
  readonly stopper: Stopper
  readonly spans: Traced
  readonly bounds: ArgumentBounds
  /** Broken-off tries without progress after which the call is given up. */
  readonly triesMax: number
}
/** The first pause before another try; doubles each time. */
const backoffMs = 250, backoffMsMax = 20_000
/** Of one fragment of text, as JSON: what a provider sends at once may be more than one append may hold. */
const pieceBytesMax = 65_536

const mayRetry = (error: unknown) => !isFault(error) || ['MODEL_FAILED', 'UNAVAILABLE'].includes(error.code)

/** The request as this try makes it. */
function requestFor({ request }: Thinking, step: Step, { plan }: Recovery): Omit<ModelRequest, 'signal'> {
  if (plan === 'resume' && step.checkpoint) return { ...request, resume: { response: step.checkpoint.response, at: step.checkpoint.at } }
  if (plan === 'prefill') return { ...request, reasoning: false, prefill: step.text }
  if (plan === 'instruct') return { ...request, messages: [...request.messages, { role: 'assistant', content: step.text }, { role: 'user', content: continueInstruction }] }
  return request
}

type Try = { readonly step: number; readonly attempt: number; readonly shown: 'token' | 'reasoning'; readonly seam: ReturnType<typeof createSeam> | undefined; /** What stands of the tries before and was not counted by the provider again. */ readonly keptTokens: number }

/** Writes the deltas of one try; answers what the provider said of its end. */
async function listen(journal: Journal, { models, request, stopper, bounds }: Thinking, asked: Omit<ModelRequest, 'signal'>, { step, attempt, shown, seam, keptTokens }: Try, span: CallSpan): Promise<void> {
  let usage: Usage | undefined, finish: Extract<ModelDelta, { type: 'finish' }>['reason'] | undefined, characters = 0
  const calls: ToolCall[] = []
  const say = (text: string, last: boolean) => {
    const said = seam ? seam(text, last) : text
    if (said !== '') for (const piece of piecesOf(said, pieceBytesMax)) journal.write(event(shown, { text: piece, step, attempt }))
  }
  const signal = stopper.signal()
  for await (const deltas of models.stream({ ...asked, signal })) {
    stopper.hear()
    for (const delta of deltas) {
      switch (delta.type) {
        case 'text': characters += delta.text.length; say(delta.text, false); break
        case 'reasoning': if (shown === 'token') for (const piece of piecesOf(delta.text, pieceBytesMax)) journal.write(event('reasoning', { text: piece, step, attempt })); break
        case 'tool_open': journal.write(toolOpen({ step, attempt, id: delta.id.slice(0, 200), name: delta.name.slice(0, 200) })); break
        case 'tool_call': {
          const one = received(delta.call, bounds)
          calls.push(one.call)
          journal.write(toolWhole({ step, attempt, ...one }))
          break
        }
        case 'checkpoint': journal.write(checkpointed({ step, attempt, ...delta.checkpoint })); break
        case 'usage': usage = delta.usage; break
        case 'finish': finish = delta.reason; break
      }
    }
    // A model that is faster than the disk waits for it here.
    if (journal.crowded()) await journal.settled()
    signal.throwIfAborted()
  }
  if (finish === undefined) throw fault('MODEL_FAILED', { why: 'the stream ended without a finish' })
  say('', true)
  const { inputTokens, outputTokens } = usage ?? { inputTokens: estimateTokens(request.messages), outputTokens: tokensOf(characters + JSON.stringify(calls).length - 2) }
  span.ended({ inputTokens, outputTokens }, finish)
  journal.write(thought({ step, attempt, finish, input_tokens: inputTokens, output_tokens: outputTokens + keptTokens }))
}

/** What the try that broke off used, as far as can be told: the customer does not pay it, the operator does. */
const lostBy = ({ request }: Thinking, step: Step): Usage => ({ inputTokens: estimateTokens(request.messages), outputTokens: tokensOf(step.text.length) })

/** Brings the current step to its accepted end. Throws the abort's reason, MODEL_FAILED when it broke off too often, MODEL_REFUSED, or STREAM_MOVED when the lease is lost. */
export async function think(journal: Journal, thinking: Thinking, number: number): Promise<void> {
  const { clock, log, stopper, terms, triesMax } = thinking
  let resumes = terms.supports.resume
  for (let broke = false; ; broke = true) {
    const step = currentStep(journal.state) ?? emptyStep(number, 'answer'), found = recoveryOf(step, { ...terms, supports: { ...terms.supports, resume: resumes } })
    const recovery: Recovery = broke && found.plan === 'begin' ? { plan: 'restart', keep: 0 } : found
    if (recovery.plan === 'accept') {
      const { inputTokens, outputTokens } = lostBy(thinking, step)
      journal.write(thought({ step: number, attempt: step.attempt, finish: 'interrupted', input_tokens: inputTokens, output_tokens: outputTokens }))
      return
    }
    const attempt = recovery.plan === 'begin' ? step.attempt : step.attempt + 1
    if (recovery.plan !== 'begin') {
      if (step.shown || step.text !== '') journal.write(event('superseded', { step: number, attempt: step.attempt, keep: recovery.keep, reason: broke ? 'failed' : 'interrupted' }))
      journal.write(attemptBegins({ step: number, attempt, plan: recovery.plan, keep: recovery.keep, lost: lostBy(thinking, step) }))
    }
    const asked = requestFor(thinking, step, recovery)
    const keptTokens = recovery.plan === 'prefill' || recovery.plan === 'instruct' ? tokensOf(recovery.keep) : 0
    const seam = recovery.plan === 'instruct' ? createSeam(step.text.slice(0, recovery.keep)) : undefined
    try {
      await thinking.spans.call(number, attempt, span => listen(journal, thinking, asked, { step: number, attempt, shown: step.purpose === 'answer' ? 'token' : 'reasoning', seam, keptTokens }, span))
      return
    } catch (error) {
      if (journal.failure()) throw journal.failure()
      // What the provider kept is gone, or broken for good: the next try goes on in another way.
      const lost = recovery.plan === 'resume'
      if (lost) resumes = false
      if (stopper.stopped() !== undefined || !(mayRetry(error) || (lost && hasCode(error, 'MODEL_REFUSED')))) throw error
      if (journal.state.tries + 1 >= triesMax) throw hasCode(error, 'UNAVAILABLE') ? fault('MODEL_FAILED', { why: error.message }, { cause: error }) : error
      log('warn', 'model.broke', { step: number, attempt, error })
      const pause = Math.min(backoffMsMax, backoffMs * 2 ** journal.state.tries) * (0.5 + clock.random() / 2)
      // The pause is ours, not the model's silence.
      stopper.rest()
      await clock.sleep(Math.max(pause, hasCode(error, 'MODEL_FAILED') ? (error.retryAfterMs ?? 0) : 0), stopper.renew())
      stopper.hear()
    }
  }
}
