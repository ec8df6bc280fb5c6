// The engine's own records among a run's events. `@n` is a record's version: what later versions of
// the engine must be able to read.
import type { Json } from '#kernel'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Checkpoint, ToolCall, Usage } from '#ports/models.ts'

export type Terminal =
  | { readonly type: 'done'; readonly status: 'done' | 'cancelled' }
  | { readonly type: 'error'; readonly code: string; readonly detail: string }
/**
 * How a run ends and what it used; `charged`: false where the customer pays nothing, whatever was
 * used.
 */
export type Ending = {
  readonly terminal: Terminal
  readonly usage: Usage
  readonly charged: boolean
}
/** What a model call is for: the answer that the user reads, a plan, or one step of it. */
export type Purpose = 'answer' | 'plan' | 'work'
/** How a broken-off model call goes on; see engine/resume-plan.ts. */
export type Plan = 'resume' | 'accept' | 'prefill' | 'instruct' | 'regenerate' | 'restart'

/**
 * What all of a run's records together are called where versions are compared: a version that
 * cannot fold them must not take runs over.
 */
export const recordsFormat = 'runs@1'

const hidden = (type: string, data: object): NewEvent => ({
  type,
  hidden: true,
  data: data as Json,
})
export const event = (type: string, data: Json): NewEvent => ({ type, data })

/**
 * A driver begins; `by`: which process, for whoever looks into the log. `died`: the one before it
 * neither ended the run nor gave it back.
 */
export const leaseTaken = (epoch: number, by?: string, died = false) =>
  hidden('took@1', { epoch, ...(by === undefined ? {} : { by }), ...(died ? { died } : {}) })
/**
 * The first record of a run that was taken over into a forked conversation: it was never driven,
 * and costs nothing.
 */
export const copied = (from: string) => hidden('copied@1', { from })
/** A model call begins. Not written for the first one of a run that answers at once. */
export const stepBegins = (data: { step: number; purpose: Purpose }) => hidden('step@1', data)
/**
 * A further try of a model call: how many characters of its text stay, and what the try before it
 * used (estimated where the provider did not say).
 */
export const attemptBegins = (data: {
  step: number
  attempt: number
  plan: Plan
  keep: number
  lost: Usage
}) => hidden('attempt@1', data)
/**
 * A model is about to be called, with so many tokens as far as that can be told before: from here
 * on its provider may charge for them.
 */
export const asked = (data: { step: number; attempt: number; input_tokens: number }) =>
  hidden('asked@1', data)
export const toolOpen = (data: { step: number; attempt: number; id: string; name: string }) =>
  hidden('open@1', data)
/** `refused`: its arguments were out of bounds and are not here; the model is told why. */
export const toolWhole = (data: {
  step: number
  attempt: number
  call: ToolCall
  refused?: string
}) => hidden('call@1', data)
export const checkpointed = (data: { step: number; attempt: number } & Checkpoint) =>
  hidden('checkpoint@1', data)
export type ModelCallAccepted = {
  step: number
  attempt: number
  finish: string
  input_tokens: number
  output_tokens: number
}
/** The model call is accepted as it stands. */
export const modelCallAccepted = (data: ModelCallAccepted) => hidden('thought@1', data)
/** More credits are about to be set aside, under `hold:{run}:{part}`; and: they are. */
export const holding = (data: { part: string; amount: number }) => hidden('holding@1', data)
export const held = (data: { part: string; amount: number }) => hidden('held@1', data)
/** How the run ends, decided once: a driver that takes over here settles this and nothing else. */
export const ending = (data: Ending) => hidden('ending@1', data)
