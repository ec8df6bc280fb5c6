// The vocabulary of a plugin: types and identity functions without effects.
import { Type as t, type Static, type TSchema } from 'typebox'
import type { Auth, Caller, Contract, Routes } from '#contracts/contract.ts'
import type { Log } from '#ports/adapter.ts'
import type { Rate, RateSpec } from '#ports/limits.ts'
import type { JobOptions } from '#ports/queue.ts'
import type { Collection, Doc } from '#ports/storage.ts'
import type { Json, Token } from '#ports/token.ts'
import type { OfflineCommand } from './commands.ts'

/**
 * Declares a service, which one plugin provides. When the provider is rebuilt, its users are
 * rebuilt too.
 */
export const service = <T>(name: string, version = '1.0.0'): Token<T, 'service'> => ({
  id: `service:${name}`,
  kind: 'service',
  version,
})
/** What each item of a point must satisfy. A plugin with an item that does not fit is refused. */
export type ItemRules = {
  /** A field of which no two items have the same value. */
  readonly unique?: string
  /** Values of that field which only the point's owner may use. */
  readonly reserved?: readonly string[]
  /** The schema of an item's fields. */
  readonly fields?: TSchema
  /** Fields of an item that hold a JSON Schema. */
  readonly schemas?: readonly string[]
  readonly methods?: Readonly<Record<string, 'required' | 'optional'>>
}
export type Point<T> = Token<T, 'point'> & { readonly rules?: ItemRules }
/**
 * Declares a point, to which many plugins contribute. It arrives as a function that answers the
 * current items, so that nobody restarts when items change. `remote`: every method may answer with
 * a promise.
 */
export const point = <T>(
  name: string,
  { version = '1.0.0', remote, rules }: { version?: string; remote?: true; rules?: ItemRules } = {},
): Point<T> => ({
  id: `point:${name}`,
  kind: 'point',
  version,
  ...(remote ? { remote } : {}),
  ...(rules ? { rules } : {}),
})

/** An organisation sees what is enabled for it. Without a scope: what is enabled for all. */
export type Scope = { readonly orgId: string }
type Given<T> = T extends { readonly kind: 'point'; readonly type?: infer V }
  ? (scope?: Scope) => readonly NonNullable<V>[]
  : T extends { readonly type?: infer V }
    ? NonNullable<V>
    : never
export type Uses = Readonly<Record<string, Token>>
export type Deps<U> = { [K in keyof U]: Given<U[K]> }

/** What the kernel gives to everything that a plugin makes. */
export type PluginContext<Config> = {
  /** The plugin's settings, checked and with defaults. */
  config: Config
  /** The plugin's rates, with the operator's changes. */
  rates: Readonly<Record<string, Rate>>
  /** Writes one line of JSON. The event gets the plugin's name as prefix. */
  log: Log
  /** Registers the undo of the step before it. Undos run in reverse when this generation ends. */
  defer(undo: () => unknown): void
  /** Aborts with the reason `handover` when this generation ends. */
  signal: AbortSignal
}
/** Names that no dep and no service may have, because a request's value would shadow it. */
export const reservedNames = [
  'caller',
  'params',
  'query',
  'headers',
  'body',
  'after',
  'address',
  'signal',
  'config',
  'rates',
  'log',
  'defer',
  'data',
  'attempt',
] as const

export type Contribution<D> = {
  readonly point: string
  readonly remote?: true
  readonly make: (deps: D) => unknown
}
/**
 * Contributes an item to a point. `make` runs once in each generation, with the plugin's deps and
 * services.
 */
export const into = <T, D = unknown>(
  target: Token<T, 'point'>,
  make: (deps: D) => T,
): Contribution<D> => ({ point: target.id, make, ...(target.remote ? { remote: true } : {}) })

/**
 * What a job gets. A job may run more than once, so repeating it must change nothing. `attempt`: 1
 * for the first try.
 */
export type JobCall = { data: Json; attempt: number; signal: AbortSignal }
export type JobSpec<D> = {
  readonly run: (call: D & JobCall) => Promise<void>
  readonly options?: JobOptions
}
/**
 * A command. `options` is an object's schema; an option with `x-operand` is written without its
 * name. The result of `run` is printed, with --json as JSON. `{ ok: false }` makes the exit code 1.
 */
export type Command<D> = {
  readonly summary: string
  readonly options: TSchema
  /** The command needs a living server. */
  readonly needsServer?: true
  readonly run: (deps: D, options: never) => Promise<unknown>
}
/** Declares a command; the type of `run`'s options follows from their schema. */
export const command = <O extends TSchema, D>(spec: {
  summary: string
  options: O
  needsServer?: true
  run: (deps: D, options: Static<O>) => Promise<unknown>
}): Command<D> => spec as unknown as Command<D>

/**
 * Formats of live records. `reads`: the formats that this version reads, as `kind@n`. `of`: the
 * plural noun for a sentence. `live`: how many records each format has now.
 */
export type RecordsSpec<D> = {
  readonly reads: readonly string[]
  readonly of: string
  readonly live: (deps: D) => Promise<Readonly<Record<string, number>>>
}

/** What a plugin does beyond its own data, and why. The port refuses what is not declared. */
export type May = {
  /** Why it holds credits and takes them. */
  readonly charge?: string
  /** Reasons for adding credits; each `billing.credit` names one of them. */
  readonly credit?: readonly string[]
  /** Why it sends emails; MAIL_PER_PLUGIN_PER_HOUR bounds them. */
  readonly mail?: string
  /** Why it asks models. Every plugin may read the catalogue. */
  readonly models?: string
  /** Why it changes which plugins serve. */
  readonly plugins?: string
  /** Has commands that work on the whole installation. */
  readonly installation?: string
}

type AnyCollection = Omit<Collection, 'type'> & { readonly type?: unknown }

type PluginDeps<U, K extends TSchema, S> = Deps<U> & PluginContext<Static<K>> & NoInfer<S>
export type Spec<C, U, K extends TSchema, S, D = PluginDeps<U, K, S>> = {
  /** The prefix of its settings and log events. Only one plugin of a name can serve. */
  readonly name: string
  /** Semver, shown by `plugins list`. */
  readonly version: string
  /** A semver range of kernel versions that it works with. */
  readonly kernel: string
  /**
   * Its operations, as rows of `contract({…})`. They define the checks before a handler, and the
   * OpenAPI document.
   */
  readonly contract?: C
  /** `v1`: under /api/v1; `root`: at the host's root. */
  readonly mount?: 'v1' | 'root'
  /** The ports, services and points that it uses, each under a name of its choice. */
  readonly uses?: U
  /** Each property is a setting: `<PLUGIN>_<PROPERTY>`, or the name in its `x-env`. */
  readonly config?: K
  /** Rates that its contract names, or that its code uses. Each becomes LIMITS_* settings. */
  readonly limits?: Readonly<Record<string, RateSpec>>
  /**
   * Its documents. Collections and indexes are made before it serves. No other plugin can reach
   * them.
   */
  readonly collections?: readonly AnyCollection[]
  /** Reasons for queries across organisations; each `store.system(why)` is one of them. */
  readonly system?: readonly string[]
  /** What it does with ports that reach beyond its own data. */
  readonly may?: May
  /**
   * For the platform's own plugin whose data is older than name prefixes: its streams, holds and
   * hints keep their names.
   */
  readonly names?: 'unprefixed'
  /**
   * Its services, made once in each generation from deps, settings and each other, in any order.
   */
  readonly services?: {
    readonly [N in keyof S]: (deps: PluginDeps<U, K, S>) => S[N]
  }
  /** The services that other plugins may use, and their tokens. */
  readonly provides?: { readonly [N in keyof NoInfer<S>]?: Token<NoInfer<S>[N], 'service'> }
  /** Functions that the queue calls, by the name of the job. */
  readonly jobs?: Readonly<Record<string, JobSpec<D>>>
  /** Its commands. They run inside the living server when there is one. */
  readonly commands?: Readonly<Record<string, Command<D> | OfflineCommand>>
  /** SSE event types → the schema of their data. */
  readonly emits?: Readonly<Record<string, TSchema>>
  /** Its items for points of others, each made by `into(point, make)`. */
  readonly contributes?: readonly Contribution<D>[]
  /**
   * The formats of its data for work that outlives a generation. A version that cannot read live
   * data is not swapped in.
   */
  readonly records?: RecordsSpec<D>
  /** Checked before the swap and by GET /readyz. Throws when the plugin cannot do its work. */
  readonly health?: (deps: D) => Promise<void>
  /** Starts timers, sockets and watchers; each effect is followed by its `defer`. */
  readonly start?: (deps: D) => Promise<void> | void
} & ({} extends C ? { readonly routes?: {} } : { readonly routes: Routes<C, D> })

/** A plugin without type parameters, as the kernel uses it. */
export type Plugin = {
  readonly name: string
  readonly version: string
  readonly kernel: string
  readonly contract?: Contract
  readonly mount?: 'v1' | 'root'
  readonly uses?: Uses
  readonly config?: TSchema
  readonly limits?: Readonly<Record<string, RateSpec>>
  readonly collections?: readonly Collection<Doc>[]
  readonly system?: readonly string[]
  readonly may?: May
  readonly names?: 'unprefixed'
  readonly services?: Readonly<Record<string, (deps: never) => unknown>>
  readonly provides?: Readonly<Record<string, Token<unknown, 'service'>>>
  readonly routes?: Readonly<Record<string, (call: never) => unknown>>
  readonly jobs?: Readonly<Record<string, JobSpec<never>>>
  readonly commands?: Readonly<Record<string, Command<never> | OfflineCommand>>
  readonly emits?: Readonly<Record<string, TSchema>>
  readonly contributes?: readonly Contribution<never>[]
  readonly records?: RecordsSpec<never>
  readonly health?: (deps: never) => Promise<void>
  readonly start?: (deps: never) => Promise<void> | void
}

/** Declares a plugin. A plugin is a value, so what it declares needs no unregistering. */
export const definePlugin = <
  const C extends Contract = {},
  const U extends Uses = {},
  K extends TSchema = TSchema,
  S = {},
>(
  spec: Spec<C, U, K, S>,
): Plugin => spec as unknown as Plugin

/** Checks credentials of one kind (`auth` of a contract's row). */
export type Authenticator = {
  readonly kind: Auth
  /**
   * Checks the headers, which have lower-case names. Undefined when the credential is not valid.
   */
  authenticate(
    headers: Readonly<Record<string, string | undefined>>,
  ): Caller | undefined | Promise<Caller | undefined>
}
/**
 * Checks the credential that a row's `auth` names. Each plugin may add a kind of its own.
 *  @example plugins/operator/plugin.ts#contributes
 */
export const Authenticators = point<Authenticator>('authenticators', {
  remote: true,
  rules: {
    fields: t.Object({ kind: t.String({ minLength: 1 }) }),
    methods: { authenticate: 'required' },
  },
})

/** Supplies files of plugins that another process has chosen. */
export type PluginFiles = {
  /**
   * Writes the file at this path; false where the file is unknown. Rejects with a sentence when the
   * file is known but not allowed. UNAVAILABLE when it cannot come now; it is requested again
   * later.
   */
  fetchFile(entry: string): Promise<boolean>
}
/**
 * Fetches plugins' files for a process that lacks them, before they are imported.
 *  @example plugins/operator/plugin.ts#contributes
 */
export const PluginFiles = point<PluginFiles>('plugin-files', {
  rules: { methods: { fetchFile: 'required' } },
})
