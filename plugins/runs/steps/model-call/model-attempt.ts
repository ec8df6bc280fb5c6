// Makes one try of a model call: what is asked, where its text joins the kept text, what it costs.
import type { ModelRequest, Usage } from '#ports/models.ts'
import type { Journal } from '../../journal/journal.ts'
import { asked as askedRecord } from '../../journal/records.ts'
import type { Step } from '../../journal/state.ts'
import { estimateTokens, tokensOf } from '../../price.ts'
import type { RunSpans } from '../../telemetry/spans.ts'
import { listen, type ModelStreaming, type Try } from './model-stream.ts'
import {
  continueInstruction,
  createRepeat,
  createSeam,
  type Recovery,
  type Seam,
} from './resume-plan.ts'

export type ModelAttempting = ModelStreaming & {
  readonly request: Omit<ModelRequest, 'signal' | 'prefill' | 'resume'>
  readonly spans: RunSpans
  /** Estimated tokens of the tools that the request offers. */
  readonly toolTokens: number
}

/** The part of the step's text that the model wrote. */
const saidIn = ({ text, lead }: Step): string => text.slice(lead)

/** The request as this try makes it. */
function requestFor(
  { request }: ModelAttempting,
  step: Step,
  { plan }: Recovery,
): Omit<ModelRequest, 'signal'> {
  const said = saidIn(step)
  if (plan === 'resume' && step.checkpoint)
    return { ...request, resume: { response: step.checkpoint.response, at: step.checkpoint.at } }
  if (plan === 'prefill') return { ...request, reasoning: false, prefill: said }
  if (plan === 'instruct')
    return {
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: said },
        { role: 'user', content: continueInstruction },
      ],
    }
  return request
}
/** The filter between the kept text and the text of this try. */
function seamFor(step: Step, { plan }: Recovery): Seam | undefined {
  if (plan === 'instruct') return createSeam(saidIn(step))
  if (plan === 'regenerate') return createRepeat(saidIn(step), { fromStart: true })
  if (plan !== 'resume' || step.purpose !== 'answer' || !step.checkpoint) return undefined
  const from = Math.max(step.checkpoint.keep, step.lead)
  return createRepeat(step.text.slice(from), { fromStart: from === step.lead })
}

/** Estimates the tokens of a request. */
const tokensIn = (
  { messages, attachments }: Omit<ModelRequest, 'signal'>,
  { toolTokens }: ModelAttempting,
): number => estimateTokens(messages, attachments) + toolTokens
/** Estimates what a broken-off try used. The customer does not pay for it; the operator does. */
export const lostBy = (calling: ModelAttempting, step: Step): Usage => ({
  inputTokens: step.asked ?? tokensIn(calling.request, calling),
  outputTokens: tokensOf(saidIn(step).length + step.deliberated),
})

/** Makes one try of the call. */
export async function attemptOf(
  journal: Journal,
  calling: ModelAttempting,
  step: Step,
  recovery: Recovery,
  attempt: number,
): Promise<void> {
  const { index, purpose } = step
  const asked = requestFor(calling, step, recovery)
  const inputTokens = tokensIn(asked, calling)
  const goesOn = recovery.plan === 'prefill' || recovery.plan === 'instruct'
  const one: Try = {
    step: index,
    attempt,
    shown: purpose === 'answer' ? 'token' : 'reasoning',
    seam: seamFor(step, recovery),
    inputTokens,
    keptTokens: goesOn ? tokensOf(saidIn(step).length) : 0,
  }
  journal.write(askedRecord({ step: index, attempt, input_tokens: inputTokens }))
  await calling.spans.call(index, attempt, span => listen(journal, calling, asked, one, span))
}
