// One model call, streamed into the journal. What a former driver left half done is superseded, never silently changed.
import { fault } from '#kernel'
import type { Message, ModelProvider, Usage } from '#ports/models.ts'
import { event, thought, type Journal } from '../journal.ts'

/** This engine makes one model call a run; tools and plans will make more. */
const step = 0

export type Thinking = { readonly models: ModelProvider; readonly model: string; readonly messages: readonly Message[]; readonly reasoning: boolean; readonly signal: AbortSignal; /** Called whenever the model sent something. */ readonly hear: () => void }
export type Outcome = { readonly usage: Usage; readonly finish: string }

/** Accepts the answer into the journal. Throws the abort's reason, MODEL_FAILED, or STREAM_MOVED when the lease is lost. */
export async function think(journal: Journal, { models, model, messages, reasoning, signal, hear }: Thinking): Promise<Outcome> {
  const { state } = journal
  if (state.accepted) return { usage: state.accepted, finish: state.accepted.finish }
  const attempt = state.attempt + 1
  if (state.text) journal.write(event('superseded', { step, attempt: state.attempt, keep: 0, reason: 'interrupted' }))
  let usage: Usage = { inputTokens: 0, outputTokens: 0 }, finish: string | undefined
  for await (const deltas of models.stream({ model, messages, reasoning, signal })) {
    hear()
    for (const delta of deltas) {
      if (delta.type === 'text') journal.write(event('token', { text: delta.text, step, attempt }))
      else if (delta.type === 'reasoning') journal.write(event('reasoning', { text: delta.text, step, attempt }))
      else if (delta.type === 'usage') usage = delta.usage
      else if (delta.type === 'finish') finish = delta.reason
    }
    // A model that is faster than the disk waits for it here.
    if (journal.crowded()) await journal.settled()
    signal.throwIfAborted()
  }
  if (finish === undefined) throw fault('MODEL_FAILED', { why: 'the stream ended without a finish' })
  journal.write(thought({ step, attempt, finish, input_tokens: usage.inputTokens, output_tokens: usage.outputTokens }))
  return { usage, finish }
}
