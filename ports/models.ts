// Language models: a catalogue, and one call that streams.
import { port, type Json, type Lifecycle } from './token.ts'

/** Tokens as the provider counts them. */
export type Usage = { readonly inputTokens: number; readonly outputTokens: number }
/**
 * Credits per thousand tokens, and the least that a run costs. Whole credits are charged, rounded
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
  /** For people, as is the description. */
  readonly name: string
  readonly description: string
  /** Who runs it. */
  readonly provider: string
  /** How much it can be given, answer included. */
  readonly contextTokens: number
  /** The longest answer that it may give. */
  readonly outputTokensMax: number
  readonly price: Price
  /**
   * Nothing that is false here is ever asked for. `prefill`: goes on after text that it is given as
   * the beginning of its answer. `resume`: keeps an answer whose connection broke.
   */
  readonly supports: {
    readonly tools: boolean
    readonly reasoning: boolean
    readonly prefill: boolean
    readonly resume: boolean
  }
  /** Taken where a request names none; one model is. */
  readonly isDefault: boolean
}
/** A tool as the model is told of it; `parameters` is a JSON Schema. */
export type ToolSpec = {
  readonly name: string
  readonly description: string
  readonly parameters: Json
}
/** `id` is the provider's, unique within the answer. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: Json }
/** A conversation's turn. */
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
  /** The oldest first. */
  readonly messages: readonly Message[]
  /** Text of files that the user put beside the last message. */
  readonly attachments?: readonly Attachment[]
  /** Those that it may call; only where `supports.tools`. */
  readonly tools?: readonly ToolSpec[]
  /** Deliberate before the answer; only where `supports.reasoning`. */
  readonly reasoning?: boolean
  /** Continue after this text of an interrupted answer; only where `supports.prefill`. */
  readonly prefill?: string
  /**
   * Go on with an answer that the provider kept when the connection broke; only where
   * `supports.resume`.
   */
  readonly resume?: Checkpoint
  /** Cuts the answer there; default the model's own. */
  readonly outputTokensMax?: number
  /** Ends the call. */
  readonly signal: AbortSignal
}
/**
 * Where an answer can be taken up again at the provider: its id there, and how much of it was
 * received.
 */
export type Checkpoint = { readonly response: string; readonly at: number }
/**
 * `tool_open` when a call begins whose arguments are still coming, `tool_call` when it is whole.
 * `checkpoint` stands for everything before it; only where `supports.resume`.
 * `usage` comes once, before `finish`; `finish` is last. An aborted call throws the signal's
 * reason; only with the reason `cancelled` is an answer that could be resumed ended at the provider
 * too.
 * A failing one throws MODEL_FAILED, which may be tried again (not before `retryAfterMs`, where the
 * provider says so), or MODEL_REFUSED, which would fail again.
 */
export type ModelDelta =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool_open'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_call'; readonly call: ToolCall }
  | { readonly type: 'checkpoint'; readonly checkpoint: Checkpoint }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: 'stop' | 'tool_calls' | 'length' | 'filtered' }

/** One provider, or several behind one catalogue. */
export type ModelProvider = Lifecycle & {
  /** What can be asked for now. */
  catalogue(): Promise<readonly Model[]>
  /**
   * INVALID_FIELD (`model`) for a key that is not in the catalogue. Deltas come as they arrive, one
   * batch per read of the wire.
   */
  stream(request: ModelRequest): AsyncIterable<readonly ModelDelta[]>
}

/**
 * For plugins that ask a model themselves, and declare why (`may.models`); an agent's runs need
 * none of it.
 *  @example plugins/models/plugin.ts
 */
export const Models = port<ModelProvider>('models')
