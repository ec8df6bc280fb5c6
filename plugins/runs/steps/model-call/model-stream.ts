// Streams one try of a model call into the journal, as far as it may be shown.
import { fault } from '#kernel'
import type { ModelDelta, ModelProvider, ModelRequest, ToolCall, Usage } from '#ports/models.ts'
import { piecesOf } from '../../journal/bytes.ts'
import type { Journal } from '../../journal/journal.ts'
import {
  checkpointed,
  event,
  modelCallAccepted,
  toolOpen,
  toolWhole,
} from '../../journal/records.ts'
import { separatorBefore } from '../../journal/state.ts'
import { tokensOf } from '../../price.ts'
import type { CallSpan } from '../../telemetry/spans.ts'
import { opened, received, type ArgumentBounds } from '../../tools/tool-arguments.ts'
import type { Cancellation } from '../cancellation.ts'
import type { Seam } from './resume-plan.ts'

export type ModelStreaming = {
  readonly models: ModelProvider
  readonly cancellation: Cancellation
  readonly bounds: ArgumentBounds
  /** Bytes of text and reasoning of one try. */
  readonly textBytesMax: number
}
/** Bytes of one fragment, as JSON. A provider may send more at once than one append may hold. */
const pieceBytesMax = 65_536

/** One try of a model call. */
export type Try = {
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
export async function listen(
  journal: Journal,
  { models, cancellation, bounds, textBytesMax }: ModelStreaming,
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
