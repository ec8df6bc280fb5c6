// The ports that the kernel itself provides to plugins.
import type { TSchema } from 'typebox'
import type { Operation, OperationKey } from '#contracts/contract.ts'
import type { Registry } from 'prom-client'
import { port, type Json } from '#ports/token.ts'

/** An operation that is served. `path` includes its mount. `plugin` serves it. */
export type MountedOperation = {
  readonly key: OperationKey
  readonly path: string
  readonly plugin: string
  readonly operation: Operation
}
/** The health of one port or plugin. `detail`: why it is unhealthy. */
export type Check = { readonly name: string; readonly ok: boolean; readonly detail?: string }
/**
 * What a process does: `api` answers requests, `worker` drives runs and does jobs, `all` does both.
 */
export type Role = 'all' | 'api' | 'worker'
export type KernelInfo = {
  readonly version: string
  /** The id of this start of this process. It is never used again. */
  readonly processId: string
  /** What this process does, by the setting ROLE. */
  readonly role: Role
  /** Every operation that is served now; `path` includes its mount. */
  operations(): readonly MountedOperation[]
  /** SSE event types → the schema of their data. */
  events(): Readonly<Record<string, TSchema>>
  /**
   * The plugins that serve now, in the order in which they were built. Each change of a plugin
   * makes a new generation. `emits`: the event types that it declares.
   */
  plugins(): readonly {
    readonly name: string
    readonly version: string
    readonly generation: number
    readonly emits: readonly string[]
  }[]
  /** Asks every port and plugin, each for at most two seconds. */
  health(): Promise<readonly Check[]>
  /**
   * Resolves when the generations before this one are undone. Then this one may take over what they
   * held.
   */
  previousDrained(): Promise<void>
  /**
   * Checks the callers of this user's event streams at this process now, because the user's rights
   * have changed.
   */
  recheck(userId: string): void
  /** False from the moment that a stop begins. */
  serving(): boolean
  /** The registry for this plugin's own metrics. It lives as long as this generation. */
  readonly metrics: Registry
  /** All metrics of the kernel and of the serving plugins, in Prometheus text format. */
  exposition(): Promise<{ readonly text: string; readonly mime: string }>
}

/** Limits of one plugin's thread, chosen by the operator. */
export type ResourceLimits = {
  /** MiB of the heap, and as many again for buffers outside it. */
  readonly memory_mb: number
  /** Milliseconds without an answer after which the thread is ended. */
  readonly stall_ms: number
}
/** The state of one plugin. */
export type PluginStatus = {
  readonly name: string
  readonly version: string
  readonly state: 'serving' | 'off' | 'failed'
  readonly generation: number
  /** The plugin's file. */
  readonly source: string
  readonly previous: string | null
  /** The organisations that it is limited to; null: everybody. */
  readonly organisations: readonly string[] | null
  /** The limits of its thread; null: it runs in the process. */
  readonly isolated: ResourceLimits | null
  /** Why it failed; else ''. */
  readonly detail: string
}
/**
 * Changes which plugins serve. A change resolves when the new set serves; calls under way end on
 * the old set. PLUGIN_REFUSED says why, and what goes on serving. NOT_FOUND for an unknown name.
 */
export type PluginRegistry = {
  /** Plugins that serve, plugins that are off, and plugins that failed. */
  list(): readonly PluginStatus[]
  /**
   * Loads a path, or the name of an unloaded plugin, for the next starts too. `replace`: instead of
   * the plugin with that name, wherever it came from. `isolated`: in a thread.
   */
  load(
    what: string,
    options?: { readonly replace?: boolean; readonly isolated?: ResourceLimits },
  ): Promise<PluginStatus>
  /** Reads the plugin again from its files. */
  reload(name: string): Promise<PluginStatus>
  /** Returns to the generation before. A second rollback undoes the first. */
  rollback(name: string): Promise<PluginStatus>
  /** Stops serving the plugin, at the next starts too. One that failed may go by its source. */
  unload(name: string): Promise<{ readonly name: string }>
  /**
   * Limits the plugin to these organisations, or (null) to none. Others see neither its operations
   * nor its tools. Its jobs and services go on.
   */
  enable(name: string, organisations: readonly string[] | null): Promise<PluginStatus>
  /**
   * Runs the plugin in a thread with these limits, or (null) in the process, at its next starts and
   * versions too. A thread protects other plugins from mistakes; it is no security boundary.
   */
  isolate(name: string, bounds: ResourceLimits | null): Promise<PluginStatus>
  /** Would the plugin load? Changes nothing. `isolated`: describes it in a thread. */
  check(
    path: string,
    options?: { readonly isolated?: true },
  ): Promise<{ readonly name: string; readonly version: string; readonly replaces: string | null }>
  /** Reads folders and operators' choices again, as at a start. */
  reconcile(): Promise<{ readonly changes: readonly string[] }>
}
/**
 * For plugins that change which plugins serve.
 *  @example plugins/operator/plugin.ts#routes
 */
export const Plugins = port<PluginRegistry>('plugins')

/**
 * Hints between processes that share a storage. A hint may be lost, so nothing may depend on it.
 */
export type Broadcasting = {
  /** Sends a hint to every other process, and waits for none of them. */
  publish(topic: string, data: Json): void
  /** Calls `act` with hints of others from now on. The answered function ends it. */
  subscribe(topic: string, act: (data: Json) => void): () => void
}
/**
 * Reaches the other processes on the same storage. It is silent where there can be none.
 *  @example plugins/runs/engine/timers.ts#startTimers
 */
export const Broadcast = port<Broadcasting>('peers')

/**
 * What the kernel knows about itself: operations, events, health, metrics.
 *  @example plugins/docs/plugin.ts
 */
export const Host = port<KernelInfo>('host')
