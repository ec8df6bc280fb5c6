// What other plugins may use of runs: the points at which they add agents and tools.
import { Type as t, type TSchema } from 'typebox'
import { point, type Json } from '#kernel'

export type Agent = {
  /** What a client gives as `app_name`. */
  readonly key: string
  /** For people. */
  readonly name: string
  /** What the system message of each of its model calls begins with. */
  readonly instruction: string
  /** Names of the tools that it may call; absent: every tool. */
  readonly tools?: readonly string[]
  /**
   * What becomes of an answer whose model call broke off; default `continue`. `restart`: it begins
   * again; what was shown must come again word for word, else the run ends with what there is.
   */
  readonly onInterrupt?: 'continue' | 'restart'
}
/** Whoever contributes an agent makes its key known as an `app_name` of POST /chat.
 *  @example plugins/runs/agents.ts
 *  @example plugins/runs/plugin.ts#contributes */
export const Agents = point<Agent>('agents', {
  remote: true,
  rules: {
    unique: 'key',
    fields: t.Object({
      key: t.String({ pattern: '^[a-zA-Z0-9_-]{1,80}$' }),
      name: t.String(),
      instruction: t.String(),
      tools: t.Optional(t.Array(t.String())),
      onInterrupt: t.Optional(t.Enum(['continue', 'restart'])),
    }),
  },
})

/**
 * May the body run again when nobody knows whether it did? `none`: it changes nothing, run it
 * again. `keyed`: run it again with the same key, the other side ignores what it has seen.
 *  `once`: never; the outcome is told as unknown, unless `probe` finds out.
 */
export type Effect = 'none' | 'keyed' | 'once'

/** Who calls a tool, within which run, and until when. */
export type ToolCallInfo = {
  /**
   * The organisation and the user whose run it is; UUIDs. `{ orgId }` is what the ports'
   * `tenant(…)` take.
   */
  readonly orgId: string
  readonly userId: string
  readonly runId: string
  readonly sessionId: string
  /**
   * The same however often this call is tried: what a `keyed` tool hands to the other side, a UUID.
   */
  readonly key: string
  /** IANA name; the caller's local time. */
  readonly timeZone: string
  /** Aborts at the tool's time limit, when the run is cancelled, or when the lease is lost. */
  readonly signal: AbortSignal
}

/** `id` comes back in the answer, `label` is shown. */
export type Choice = { readonly id: string; readonly label: string }
/**
 * What a tool may ask of the user instead of answering at once; the answer becomes the call's
 * result.
 */
export type Question =
  | {
      readonly kind: 'user_choice'
      readonly question: string
      /** None for a question that is answered in words. */
      readonly options: readonly Choice[]
      /** Several may be chosen. */
      readonly multiple: boolean
      /** A text of the user's own is an answer too. */
      readonly free: boolean
    }
  | {
      readonly kind: 'quiz'
      readonly title: string
      readonly items: readonly {
        readonly id: string
        readonly question: string
        readonly options: readonly Choice[]
      }[]
    }

/**
 * `content` is what the model reads. A long one is kept whole as an artifact, and the model gets an
 * excerpt.
 */
export type ToolAnswer =
  | {
      readonly content: string
      /** The tool says no: told to the model, which may try something else. */
      readonly isError?: boolean
      /** What the call has made for the user: shown as `artifact`, right before the result. */
      readonly artifact?: { readonly id: string; readonly filename: string }
    }
  | { readonly ask: Question }

/**
 * A tool. Calls of it that are under way end on the generation of the plugin that they began with.
 */
export type Tool = {
  /** `^[a-z][a-z0-9_]{0,63}$`, unique. */
  readonly name: string
  /** For the model: what it does and when to use it. */
  readonly description: string
  /** A JSON Schema of an object; arguments that do not match never reach the body. */
  readonly parameters: TSchema
  /** Default `once`. */
  readonly effect?: Effect
  /** Milliseconds until the call is aborted; default 30000. */
  readonly timeoutMs?: number
  /** May run beside other calls of the same answer; default: where the effect is `none`. */
  readonly parallel?: boolean
  /** The user must approve each call before the body runs. */
  readonly approval?: boolean
  /** May throw a fault or an error: the model is told, the run goes on. */
  run(args: Json, call: ToolCallInfo): Promise<ToolAnswer> | ToolAnswer
  /** For `once`: was the call with this key carried out? Undefined: cannot be known. */
  probe?(key: string, call: ToolCallInfo): Promise<ToolAnswer | 'not done' | undefined>
}
/**
 * What the model may call in a run. A call whose arguments match the schema is journalled, its body
 * runs, its answer is shown to the model and to the user as `tool_result`.
 *  @example plugins/tools/note.ts
 *  @example plugins/tools/plugin.ts
 */
export const Tools = point<Tool>('tools', {
  remote: true,
  rules: {
    // The model says by `report_failure` that a step of a plan cannot be done; the engine takes it.
    unique: 'name',
    reserved: ['report_failure'],
    schemas: ['parameters'],
    methods: { run: 'required', probe: 'optional' },
    fields: t.Object({
      name: t.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' }),
      description: t.String(),
      parameters: t.Object({ type: t.Literal('object') }),
      effect: t.Optional(t.Enum(['none', 'keyed', 'once'])),
      timeoutMs: t.Optional(t.Number({ exclusiveMinimum: 0 })),
      parallel: t.Optional(t.Boolean()),
      approval: t.Optional(t.Boolean()),
    }),
  },
})
