// Streams one model call into the journal. A call that broke off is continued or superseded, never
// silently changed.
import { fault, hasCode, isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ModelDelta, ModelProvider, ModelRequest, ToolCall, Usage } from '#ports/models.ts'
import { piecesOf } from '../journal/bytes.ts'
import {
  continueInstruction,
  createRepeat,
  createSeam,
  differs,
  isDiffering,
  recoveryOf,
  type Recovery,
  type Seam,
} from './resume-plan.ts'
import type { Journal } from '../journal/journal.ts'
import {
  asked as askedRecord,
  attemptBegins,
  checkpointed,
  event,
  modelCallAccepted,
  toolOpen,
  toolWhole,
  type Plan,
} from '../journal/records.ts'
import { estimateTokens, tokensOf } from '../price.ts'
import { opened, received, type ArgumentBounds } from '../tools/tool-arguments.ts'
import { currentStep, emptyStep, separatorBefore, type Step } from '../journal/state.ts'
import type { Cancellation } from './cancellation.ts'
import type { CallSpan, RunSpans } from '../telemetry/spans.ts'

export type ModelCalling = {
  readonly models: ModelProvider
  readonly clock: Clock
  readonly log: Log
  readonly request: Omit<ModelRequest, 'signal' | 'prefill' | 'resume'>
  readonly terms: Parameters<typeof recoveryOf>[1]
  readonly cancellation: Cancellation
  readonly spans: RunSpans
  readonly bounds: ArgumentBounds
  /** Estimated tokens of the tools that the request offers. */
  readonly toolTokens: number
  /** Bytes of text and reasoning of one try. */
  readonly textBytesMax: number
  /** After so many broken-off tries without progress the call fails. */
  readonly triesMax: number
}
/** The first pause before another try; doubles each time. */
const backoffMs = 250
const backoffMsMax = 20_000
/** Bytes of one fragment, as JSON. A provider may send more at once than one append may hold. */
const pieceBytesMax = 65_536

const mayRetry = (error: unknown) =>
  !isFault(error) || ['MODEL_FAILED', 'UNAVAILABLE'].includes(error.code)

/** The part of the step's text that the model wrote. */
const saidIn = ({ text, lead }: Step): string => text.slice(lead)

/** The request as this try makes it. */
function requestFor(
  { request }: ModelCalling,
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

type Try = {
  readonly step: number
  readonly attempt: number
  readonly shown: 'token' | 'reasoning'
  readonly seam: Seam | undefined
  /** Tokens kept of earlier tries, where the provider does not count them again. */
  readonly keptTokens: number
  /** Estimated, for a provider that does not count. */
  readonly inputTokens: number
}

/** Writes the text of one try, as far as it may be shown. */
function createTeller(journal: Journal, { step, attempt, shown, seam }: Try) {
  const write = (type: 'token' | 'reasoning', text: string) => {
    for (const piece of piecesOf(text, pieceBytesMax))
      journal.write(event(type, { text: piece, step, attempt }))
  }
  const show = (text: string) => {
    if (text === '') return
    const isFirst = shown === 'token' && (journal.state.steps[step]?.text ?? '') === ''
    const separator = isFirst ? separatorBefore(journal.state, step) : ''
    if (separator !== '') write('token', separator)
    write(shown, text)
  }
  return {
    say: (text: string) => show(seam ? seam.push(text) : text),
    deliberate: (text: string) => {
      if (shown === 'token') write('reasoning', text)
    },
    /** Writes held-back text: the next record comes after all text. */
    catchUp: () => show(seam ? seam.end() : ''),
    isBehind: () => seam?.holds() ?? false,
  }
}

/** Writes the deltas of one try, up to its accepted end. */
async function listen(
  journal: Journal,
  { models, cancellation, bounds, textBytesMax }: ModelCalling,
  asked: Omit<ModelRequest, 'signal'>,
  one: Try,
  span: CallSpan,
): Promise<void> {
  const { step, attempt, keptTokens } = one
  const teller = createTeller(journal, one)
  const calls: ToolCall[] = []
  let usage: Usage | undefined
  let finish: Extract<ModelDelta, { type: 'finish' }>['reason'] | undefined
  let characters = 0
  let bytes = 0
  const count = (text: string) => {
    characters += text.length
    bytes += Buffer.byteLength(text)
  }
  const hear = (delta: ModelDelta): void => {
    switch (delta.type) {
      case 'text':
        count(delta.text)
        return teller.say(delta.text)
      case 'reasoning':
        count(delta.text)
        return teller.deliberate(delta.text)
      case 'tool_open':
        teller.catchUp()
        return journal.write(toolOpen({ step, attempt, ...opened(delta) }))
      case 'tool_call': {
        const whole = received(delta.call, bounds)
        calls.push(whole.call)
        teller.catchUp()
        return journal.write(toolWhole({ step, attempt, ...whole }))
      }
      // A checkpoint covers all text before it. While text is held back, the journal lacks that
      // text, and a later checkpoint will do.
      case 'checkpoint':
        return teller.isBehind()
          ? undefined
          : journal.write(checkpointed({ step, attempt, ...delta.checkpoint }))
      case 'usage':
        usage = delta.usage
        return
      case 'finish':
        finish = delta.reason
        return
    }
  }
  const signal = cancellation.signal()
  for await (const deltas of models.stream({ ...asked, signal })) {
    cancellation.touch()
    deltas.forEach(hear)
    // A model that is faster than the disk waits for it here.
    if (journal.crowded()) await journal.settled()
    signal.throwIfAborted()
    if (bytes <= textBytesMax) continue
    finish = 'length'
    break
  }
  if (finish === undefined)
    throw fault('MODEL_FAILED', { why: 'the stream ended without a finish' })
  teller.catchUp()
  const { inputTokens, outputTokens } = usage ?? {
    inputTokens: one.inputTokens,
    outputTokens: tokensOf(characters + JSON.stringify(calls).length - 2),
  }
  span.ended({ inputTokens, outputTokens }, finish)
  journal.write(
    modelCallAccepted({
      step,
      attempt,
      finish,
      input_tokens: inputTokens,
      output_tokens: outputTokens + keptTokens,
    }),
  )
}

/** Estimates the tokens of a request. */
const tokensIn = (
  { messages, attachments }: Omit<ModelRequest, 'signal'>,
  { toolTokens }: ModelCalling,
): number => estimateTokens(messages, attachments) + toolTokens
/** Estimates what a broken-off try used. The customer does not pay for it; the operator does. */
const lostBy = (thinking: ModelCalling, step: Step): Usage => ({
  inputTokens: step.asked ?? tokensIn(thinking.request, thinking),
  outputTokens: tokensOf(saidIn(step).length + step.deliberated),
})

/** Makes one try of the call. */
async function attemptOf(
  journal: Journal,
  thinking: ModelCalling,
  step: Step,
  recovery: Recovery,
  attempt: number,
): Promise<void> {
  const { index, purpose } = step
  const asked = requestFor(thinking, step, recovery)
  const inputTokens = tokensIn(asked, thinking)
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
  await thinking.spans.call(index, attempt, span => listen(journal, thinking, asked, one, span))
}

/** Plans after whose failure another plan may succeed. */
const hasOther = (plan: Recovery['plan']): plan is Plan =>
  plan === 'resume' || plan === 'prefill' || plan === 'instruct' || plan === 'regenerate'

/**
 * Brings the current step to its accepted end. Throws the abort's reason, MODEL_FAILED after too
 * many tries, MODEL_REFUSED, or STREAM_MOVED.
 */
export async function callModel(
  journal: Journal,
  thinking: ModelCalling,
  number: number,
): Promise<void> {
  const { clock, log, cancellation, terms, triesMax } = thinking
  const without = new Set<Plan>()
  for (let broke = false; ; broke = true) {
    const step = currentStep(journal.state) ?? emptyStep(number, 'answer')
    const found = recoveryOf(step, { ...terms, without })
    const recovery: Recovery =
      broke && found.plan === 'begin' ? { plan: 'restart', keep: 0 } : found
    if (recovery.plan === 'end') throw differs()
    if (recovery.plan === 'accept') {
      const { inputTokens, outputTokens } = lostBy(thinking, step)
      journal.write(
        modelCallAccepted({
          step: number,
          attempt: step.attempt,
          finish: 'interrupted',
          input_tokens: inputTokens,
          output_tokens: outputTokens,
        }),
      )
      return
    }
    const before = { ...step }
    const attempt = recovery.plan === 'begin' ? step.attempt : step.attempt + 1
    if (recovery.plan !== 'begin') {
      const again = attemptBegins({
        step: number,
        attempt,
        plan: recovery.plan,
        keep: recovery.keep,
        lost: lostBy(thinking, step),
      })
      const superseded = event('superseded', {
        step: number,
        attempt: step.attempt,
        keep: recovery.keep,
        reason: broke ? 'failed' : 'interrupted',
      })
      if (step.shown || step.text !== '') journal.write(superseded, again)
      else journal.write(again)
    }
    try {
      await attemptOf(journal, thinking, before, recovery, attempt)
      return
    } catch (error) {
      if (journal.failure()) throw journal.failure()
      const isRefused = hasCode(error, 'MODEL_REFUSED')
      // The provider lost the answer that it kept, refuses a prefill or instruction, or answers
      // differently. The next try uses another plan.
      const another =
        hasOther(recovery.plan) && (recovery.plan === 'resume' || isRefused || isDiffering(error))
      if (another) without.add(recovery.plan as Plan)
      if (cancellation.stopped() !== undefined || !(mayRetry(error) || (another && isRefused)))
        throw error
      if (journal.state.tries + 1 >= triesMax)
        throw hasCode(error, 'UNAVAILABLE')
          ? fault('MODEL_FAILED', { why: error.message }, { cause: error })
          : error
      log('warn', 'model.broke', { step: number, attempt, error })
      const pause =
        Math.min(backoffMsMax, backoffMs * 2 ** journal.state.tries) * (0.5 + clock.random() / 2)
      // The silence during this pause is not the model's.
      cancellation.pause()
      await clock.sleep(
        Math.max(pause, hasCode(error, 'MODEL_FAILED') ? (error.retryAfterMs ?? 0) : 0),
        cancellation.renew(),
      )
      cancellation.touch()
    }
  }
}
