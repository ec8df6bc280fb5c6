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
   * What happens to an answer whose model call broke off; default `continue`. `restart`: the model
   * answers again from the beginning.
   * Its new text must repeat the shown text word for word. If it does not, the run ends with the
   * text that was shown.
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
 * May the body run again when it is unknown whether it ran? `none`: the tool changes nothing, so it
 * runs again. `keyed`: it runs again with the same key, and the receiver ignores a key that it has
 * seen.
 * `once`: it never runs again; the outcome is told as unknown, unless `probe` finds out.
 */
export type Effect = 'none' | 'keyed' | 'once'

/** Who calls a tool, within which run, and until when. */
export type ToolCallInfo = {
  /**
   * The organisation and the user of the run, as UUIDs. The ports' `tenant(…)` takes `{ orgId }`.
   */
  readonly orgId: string
  readonly userId: string
  readonly runId: string
  readonly sessionId: string
  /**
   * A UUID that is the same for every try of this call. A `keyed` tool hands it to the receiver.
   */
  readonly key: string
  /** The caller's time zone, as an IANA name. */
  readonly timeZone: string
  /** Aborts at the tool's time limit, when the run is cancelled, or when the lease is lost. */
  readonly signal: AbortSignal
}

/** `id` comes back in the answer, `label` is shown. */
export type Choice = { readonly id: string; readonly label: string }
/**
 * A question that a tool may ask the user instead of answering at once. The user's answer becomes
 * the call's result.
 */
export type Question =
  | {
      readonly kind: 'user_choice'
      readonly question: string
      /** Empty for a question that the user answers in words. */
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
 * `content` is what the model reads. A long `content` is kept whole as an artifact, and the model
 * gets an excerpt.
 */
export type ToolAnswer =
  | {
      readonly content: string
      /** The tool failed or refused. The model is told, and may try something else. */
      readonly isError?: boolean
      /**
       * A file that the call made for the user. It is shown as `artifact`, right before the result.
       */
      readonly artifact?: { readonly id: string; readonly filename: string }
    }
  | { readonly ask: Question }

/**
 * A tool. When its plugin is reloaded, calls that are under way end on the generation that they
 * began with.
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
  /** For `once`: was the call with this key carried out? Undefined: the tool cannot know. */
  probe?(key: string, call: ToolCallInfo): Promise<ToolAnswer | 'not done' | undefined>
}
/**
 * Tools that the model may call in a run. The engine journals a call whose arguments match the
 * schema, and runs its body.
 * The model and the user get the answer as `tool_result`.
 * @example plugins/tools/note.ts
 * @example plugins/tools/plugin.ts
 */
export const Tools = point<Tool>('tools', {
  remote: true,
  rules: {
    // The model calls `report_failure` when a step of a plan cannot be done. The engine handles it.
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
