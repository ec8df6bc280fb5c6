// Language models: a catalogue, and one call that streams.
import { port, type Json, type Lifecycle } from './token.ts'

export type Usage = { readonly inputTokens: number; readonly outputTokens: number }
/** Credits per thousand tokens, and the least that a run costs. Whole credits are charged, rounded up. */
export type Price = { readonly inputPer1k: number; readonly outputPer1k: number; readonly minimum: number }
export type Model = {
  /** The catalogue key on the wire. */
  readonly key: string
  readonly name: string
  readonly description: string
  readonly provider: string
  readonly contextTokens: number
  readonly outputTokensMax: number
  readonly price: Price
  readonly supports: { readonly tools: boolean; readonly reasoning: boolean; readonly prefill: boolean; readonly resume: boolean }
  readonly isDefault: boolean
}
export type ToolSpec = { readonly name: string; readonly description: string; readonly parameters: Json }
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: Json }
export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly content: string }
export type Attachment = { readonly name: string; readonly text: string }

export type ModelRequest = {
  readonly model: string
  readonly messages: readonly Message[]
  /** Text of files that the user put beside the last message. */
  readonly attachments?: readonly Attachment[]
  readonly tools?: readonly ToolSpec[]
  readonly reasoning?: boolean
  /** Continue after this text of an interrupted answer; only where `supports.prefill`. */
  readonly prefill?: string
  /** Go on with an answer that the provider kept when the connection broke; only where `supports.resume`. */
  readonly resume?: Checkpoint
  readonly outputTokensMax?: number
  readonly signal: AbortSignal
}
/** Where an answer can be taken up again at the provider: its id there, and how much of it was received. */
export type Checkpoint = { readonly response: string; readonly at: number }
/** `tool_open` when a call begins whose arguments are still coming, `tool_call` when it is whole. `checkpoint` stands for everything before it; only where `supports.resume`.
 *  `usage` comes once, before `finish`; `finish` is last. An aborted call throws the signal's reason; only with the reason `cancelled` is an answer that could be resumed ended at the provider too.
 *  A failing one throws MODEL_FAILED, which may be tried again (not before `retryAfterMs`, where the provider says so), or MODEL_REFUSED, which would fail again. */
export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool_open'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_call'; readonly call: ToolCall }
  | { readonly type: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: 'stop' | 'tool_calls' | 'length' | 'filtered' }

export type ModelProvider = Lifecycle & {
  catalogue(): Promise<readonly Model[]>
  /** INVALID_FIELD (`model`) for a key that is not in the catalogue. Deltas come as they arrive, one batch per read of the wire. */
  stream(request: ModelRequest): AsyncIterable<readonly ModelDelta[]>
}

export const Models = port<ModelProvider>('models')
