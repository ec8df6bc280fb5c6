// The engine's own records among a run's events. `@n` is a record's version. Later versions of the
// engine must be able to read every record.
import type { Json } from '#kernel'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Checkpoint, ToolCall, Usage } from '#ports/models.ts'

export type Terminal =
  | { readonly type: 'done'; readonly status: 'done' | 'cancelled' }
  | { readonly type: 'error'; readonly code: string; readonly detail: string }
/**
 * How a run ends and what it used. `charged` is false where the customer pays nothing, whatever was
 * used.
 */
export type Ending = {
  readonly terminal: Terminal
  readonly usage: Usage
  readonly charged: boolean
}
/** What a model call is for: the answer that the user reads, a plan, or one step of it. */
export type Purpose = 'answer' | 'plan' | 'work'
/** How a model call that broke off goes on; see steps/model-call/resume-plan.ts. */
export type Plan = 'resume' | 'accept' | 'prefill' | 'instruct' | 'regenerate' | 'restart'

/**
 * Names the format of all records of a run, for comparing versions. A version that cannot fold this
 * format must not take runs over.
 */
export const recordsFormat = 'runs@1'

const hidden = (type: string, data: object): NewEvent => ({
  type,
  hidden: true,
  data: data as Json,
})
export const event = (type: string, data: Json): NewEvent => ({ type, data })

/**
 * A driver begins. `by` names its process, for people who read the log. `died`: the driver before
 * it neither ended the run nor gave it back.
 */
export const leaseTaken = (epoch: number, by?: string, died = false) =>
  hidden('took@1', { epoch, ...(by === undefined ? {} : { by }), ...(died ? { died } : {}) })
/**
 * The first record of a run that was copied into a fork. The copy was never driven, and costs
 * nothing.
 */
export const copied = (from: string) => hidden('copied@1', { from })
/** A model call begins. Not written for the first one of a run that answers at once. */
export const stepBegins = (data: { step: number; purpose: Purpose }) => hidden('step@1', data)
/**
 * Begins a further try of a model call. `keep`: characters of its text that stay. `lost`: what the
 * try before it used, estimated where the provider did not say.
 */
export const attemptBegins = (data: {
  step: number
  attempt: number
  plan: Plan
  keep: number
  lost: Usage
}) => hidden('attempt@1', data)
/**
 * A model call is about to be sent, with an estimate of its input tokens. From here on the provider
 * may charge for them.
 */
export const asked = (data: { step: number; attempt: number; input_tokens: number }) =>
  hidden('asked@1', data)
export const toolOpen = (data: { step: number; attempt: number; id: string; name: string }) =>
  hidden('open@1', data)
/**
 * A tool call is complete. `refused`: its arguments were out of bounds and are left out; the model
 * is told why.
 */
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
/**
 * `holding`: more credits are about to be held, under `hold:{run}:{part}`. `held`: they are held.
 */
export const holding = (data: { part: string; amount: number }) => hidden('holding@1', data)
export const held = (data: { part: string; amount: number }) => hidden('held@1', data)
/**
 * How the run ends, decided once. A driver that takes over after this record only settles that end.
 */
export const ending = (data: Ending) => hidden('ending@1', data)
