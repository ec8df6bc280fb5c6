// The whole vocabulary of a plugin: types and identity functions, nothing that acts.
import { Type as t, type Static, type TSchema } from 'typebox'
import type { Auth, Caller, Contract, Routes } from '#contracts/contract.ts'
import type { Log } from '#ports/adapter.ts'
import type { Rate, RateSpec } from '#ports/limits.ts'
import type { JobOptions } from '#ports/queue.ts'
import type { Collection, Doc } from '#ports/storage.ts'
import type { Json, Token } from '#ports/token.ts'
import type { OfflineCommand } from './cli/commands.ts'

/**
 * A service: provided by one plugin, arrives as itself; whoever uses it is rebuilt when its
 * provider is.
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
  /** Values of it that the point's owner keeps for itself. */
  readonly reserved?: readonly string[]
  /** An object's schema of its fields. */
  readonly fields?: TSchema
  /** Fields that hold a JSON Schema. */
  readonly schemas?: readonly string[]
  readonly methods?: Readonly<Record<string, 'required' | 'optional'>>
}
export type Point<T> = Token<T, 'point'> & { readonly rules?: ItemRules }
/**
 * A point: many contributors; arrives as a function that answers today's list, so that nobody
 * restarts when one comes or goes. `remote`: every method of an item may answer with a promise.
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

/** For whom: an organisation sees what is enabled for it; without one, what is enabled for all. */
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
  /** Its settings, checked and with their defaults. */
  config: Config
  /** The plugin's rates, as the operator set them. */
  rates: Readonly<Record<string, Rate>>
  /** One line of JSON; the event is prefixed with the plugin's name. */
  log: Log
  /** Names the undo of what was just done; undone in reverse when this generation goes. */
  defer(undo: () => unknown): void
  /** Aborts when this generation goes, with reason `handover`. */
  signal: AbortSignal
}
/** No dep and no service may take these names: a request's value would silently shadow it. */
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
 * Adds an item to a point; `make` is called once a generation with the plugin's deps and services.
 */
export const into = <T, D = unknown>(
  target: Token<T, 'point'>,
  make: (deps: D) => T,
): Contribution<D> => ({ point: target.id, make, ...(target.remote ? { remote: true } : {}) })

/**
 * What a job is called with; at least once, so that doing it again must change nothing. `attempt`:
 * 1 for the first try.
 */
export type JobCall = { data: Json; attempt: number; signal: AbortSignal }
export type JobSpec<D> = {
  readonly run: (call: D & JobCall) => Promise<void>
  readonly options?: JobOptions
}
/**
 * `options`: an object's schema; an option with `x-operand` is a word without its name. What `run`
 * answers is printed, or JSON with --json; `{ ok: false }` makes the exit code 1.
 */
export type Command<D> = {
  readonly summary: string
  readonly options: TSchema
  /** It acts on a living server, and means nothing without one. */
  readonly needsServer?: true
  readonly run: (deps: D, options: never) => Promise<unknown>
}
/** A command line's options flow from their schema into `run`. */
export const command = <O extends TSchema, D>(spec: {
  summary: string
  options: O
  needsServer?: true
  run: (deps: D, options: Static<O>) => Promise<unknown>
}): Command<D> => spec as unknown as Command<D>

/**
 * `reads`: the formats that this version understands, as `kind@n`. `of`: what holds them, in the
 * plural, for a sentence. `live`: how many hold each now.
 */
export type RecordsSpec<D> = {
  readonly reads: readonly string[]
  readonly of: string
  readonly live: (deps: D) => Promise<Readonly<Record<string, number>>>
}

/** What a plugin does beyond its own data, and why: undeclared, the port refuses it. */
export type May = {
  /** Sets credits aside and takes them. */
  readonly charge?: string
  /** Reasons for which it adds credits; each `billing.credit` gives one of them. */
  readonly credit?: readonly string[]
  /** Sends emails, as many an hour as MAIL_PER_PLUGIN_PER_HOUR says. */
  readonly mail?: string
  /** Asks models; their catalogue is everybody's. */
  readonly models?: string
  /** Changes which plugins serve. */
  readonly plugins?: string
  /** Has commands that work on the whole installation. */
  readonly installation?: string
}

type AnyCollection = Omit<Collection, 'type'> & { readonly type?: unknown }

type PluginDeps<U, K extends TSchema, S> = Deps<U> & PluginContext<Static<K>> & NoInfer<S>
export type Spec<C, U, K extends TSchema, S, D = PluginDeps<U, K, S>> = {
  /**
   * The prefix of its settings and of what it logs. Two plugins of one name do not serve together.
   */
  readonly name: string
  /** Semver; told by `plugins list`. */
  readonly version: string
  /** The kernel versions it was written for, as a semver range. */
  readonly kernel: string
  /**
   * Its operations, as rows of `contract({…})`: what is checked before a handler runs, and what the
   * OpenAPI document says.
   */
  readonly contract?: C
  /** `v1`: under /api/v1; `root`: at the host's root. */
  readonly mount?: 'v1' | 'root'
  /**
   * Under which name each port, service or point of others arrives in whatever the plugin makes.
   */
  readonly uses?: U
  /** Each property is a setting: `<PLUGIN>_<PROPERTY>`, or the name in its `x-env`. */
  readonly config?: K
  /** Rates that its contract names, or that it takes itself; each is a LIMITS_* setting. */
  readonly limits?: Readonly<Record<string, RateSpec>>
  /**
   * Its documents: made, with their indexes, before it serves; no other plugin's storage knows
   * them.
   */
  readonly collections?: readonly AnyCollection[]
  /** Why it may look across organisations; each `store.system(why)` must be one of these. */
  readonly system?: readonly string[]
  /** What it does with ports that reach beyond its own data. */
  readonly may?: May
  /**
   * For the platform's own plugin whose records are older than names by plugin: its streams, holds
   * and hints are called as it calls them.
   */
  readonly names?: 'unprefixed'
  /** Made once a generation from deps, settings and each other, in whatever order they need. */
  readonly services?: {
    readonly [N in keyof S]: (deps: PluginDeps<U, K, S>) => S[N]
  }
  /** Which of its services other plugins may take, and under which token. */
  readonly provides?: { readonly [N in keyof NoInfer<S>]?: Token<NoInfer<S>[N], 'service'> }
  /** What the queue calls, by the name under which a job is put in. */
  readonly jobs?: Readonly<Record<string, JobSpec<D>>>
  /** Words of the command line; they run inside the living server when there is one. */
  readonly commands?: Readonly<Record<string, Command<D> | OfflineCommand>>
  /** SSE event types → the schema of their data. */
  readonly emits?: Readonly<Record<string, TSchema>>
  /** Items for the points of others, each made by `into(point, make)`. */
  readonly contributes?: readonly Contribution<D>[]
  /**
   * What it keeps in a form of its own for work that outlives a generation. A version that cannot
   * read what is live is not swapped in.
   */
  readonly records?: RecordsSpec<D>
  /**
   * Asked before it is swapped in and by GET /readyz. Refuses (throws) when the plugin cannot do
   * its work.
   */
  readonly health?: (deps: D) => Promise<void>
  /** For timers, sockets and watchers only; each effect is followed by its `defer`. */
  readonly start?: (deps: D) => Promise<void> | void
} & ({} extends C ? { readonly routes?: {} } : { readonly routes: Routes<C, D> })

/** A plugin as the kernel sees it: what the types above say, erased. */
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

/** A plugin is a value: what is only declared needs no unregistering. */
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
  /** By headers with lower-case names. Undefined: not valid. */
  authenticate(
    headers: Readonly<Record<string, string | undefined>>,
  ): Caller | undefined | Promise<Caller | undefined>
}
/**
 * Who checks the credential that a row's `auth` names; each plugin may bring a kind of its own.
 * @example plugins/operator/plugin.ts#contributes
 */
export const Authenticators = point<Authenticator>('authenticators', {
  remote: true,
  rules: {
    fields: t.Object({ kind: t.String({ minLength: 1 }) }),
    methods: { authenticate: 'required' },
  },
})

/** Where plugins' files come from when another process has chosen them. */
export type PluginFiles = {
  /**
   * Puts the file where this path says; false where it knows nothing of it. Rejects with a sentence
   * where it has it and may not, or cannot now (UNAVAILABLE: asked again later).
   */
  fetchFile(entry: string): Promise<boolean>
}
/**
 * Who brings plugins' files to a process that lacks them, before they are imported. @example
 * plugins/operator/plugin.ts#contributes
 */
export const PluginFiles = point<PluginFiles>('plugin-files', {
  rules: { methods: { fetchFile: 'required' } },
})
