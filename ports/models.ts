// Language models: a catalogue, and one call that streams.
import { port, type Json, type Lifecycle } from './token.ts'

/** Token counts, as the provider counts tokens. */
export type Usage = { readonly inputTokens: number; readonly outputTokens: number }
/**
 * Credits per thousand tokens, and the minimum that a run costs. Charges are whole credits, rounded
 * up.
 */
export type Price = {
  readonly inputPer1k: number
  readonly outputPer1k: number
  readonly minimum: number
}
/** One row of the catalogue. */
export type Model = {
  /** The catalogue key on the wire. */
  readonly key: string
  /** The name that people read. */
  readonly name: string
  readonly description: string
  /** The company or server that runs the model. */
  readonly provider: string
  /** Tokens of the model's window, its answer included. */
  readonly contextTokens: number
  /** Tokens of the longest answer. */
  readonly outputTokensMax: number
  readonly price: Price
  /**
   * What the model can do; the platform never asks for what is false here. `prefill`: it continues
   * a given beginning of its answer. `resume`: its provider keeps an answer whose connection broke.
   */
  readonly supports: {
    readonly tools: boolean
    readonly reasoning: boolean
    readonly prefill: boolean
    readonly resume: boolean
  }
  /** This model answers requests that name none. Exactly one model is the default. */
  readonly isDefault: boolean
}
/** A tool as it is described to the model. `parameters` is a JSON Schema. */
export type ToolSpec = {
  readonly name: string
  readonly description: string
  readonly parameters: Json
}
/** A call of a tool. `id` comes from the provider and is unique within the answer. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: Json }
/** One turn of a conversation. */
export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant'
      readonly content: string
      readonly toolCalls?: readonly ToolCall[]
    }
  | { readonly role: 'tool'; readonly callId: string; readonly content: string }
/** A file's name and its text. */
export type Attachment = { readonly name: string; readonly text: string }

/** One call of a model. */
export type ModelRequest = {
  /** A key of the catalogue. */
  readonly model: string
  /** The conversation, oldest message first. */
  readonly messages: readonly Message[]
  /** Text of files that the user attached to the last message. */
  readonly attachments?: readonly Attachment[]
  /** Tools that the model may call; only where `supports.tools`. */
  readonly tools?: readonly ToolSpec[]
  /** Asks the model to deliberate before it answers; only where `supports.reasoning`. */
  readonly reasoning?: boolean
  /**
   * The text of an interrupted answer, which the model continues; only where `supports.prefill`.
   */
  readonly prefill?: string
  /**
   * Resumes an answer that the provider kept when the connection broke; only where
   * `supports.resume`.
   */
  readonly resume?: Checkpoint
  /** The longest answer in tokens; by default the model's own limit. */
  readonly outputTokensMax?: number
  /** Aborts the call. */
  readonly signal: AbortSignal
}
/**
 * Where the provider can resume an answer: the answer's id there, and how much of it was received.
 */
export type Checkpoint = { readonly response: string; readonly at: number }
/**
 * `tool_open` begins a tool call whose arguments are still coming; `tool_call` completes it.
 * `checkpoint` covers everything before it; only where `supports.resume`. `usage` comes once,
 * before `finish`, and `finish` is last. An aborted call throws the signal's reason. Only the
 * reason `cancelled` also ends a resumable answer at the provider. A failed call throws
 * MODEL_FAILED, which may be tried again, not before `retryAfterMs` where the provider says so.
 * MODEL_REFUSED means that another try would fail too.
 */
export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool_open'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_call'; readonly call: ToolCall }
  | { readonly type: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: 'stop' | 'tool_calls' | 'length' | 'filtered' }

/** One provider, or several providers behind one catalogue. */
export type ModelProvider = Lifecycle & {
  /** The models that can be asked now. */
  catalogue(): Promise<readonly Model[]>
  /**
   * Streams an answer: deltas as they arrive, one batch for each read from the network.
   * INVALID_FIELD (`model`) for a key that is not in the catalogue.
   */
  stream(request: ModelRequest): AsyncIterable<readonly ModelDelta[]>
}

/**
 * For plugins that ask a model themselves and declare why (`may.models`). An agent's runs do not
 * need this port.
 *  @example plugins/models/plugin.ts
 */
export const Models = port<ModelProvider>('models')
