// What the kernel tells plugins about itself: a port that it provides by itself.
import type { TSchema } from 'typebox'
import type { Operation, OperationKey } from '#contracts/contract.ts'
import type { Registry } from 'prom-client'
import { port, type Json } from '#ports/token.ts'
import type { ResourceLimits } from './isolation/manifest.ts'

/** An operation that is served. `path` includes its mount; `plugin`: whose it is. */
export type MountedOperation = {
  readonly key: OperationKey
  readonly path: string
  readonly plugin: string
  readonly operation: Operation
}
/** How one port or plugin is; `detail`: why it is not well. */
export type Check = { readonly name: string; readonly ok: boolean; readonly detail?: string }
/**
 * What a process does: `api` answers requests, `worker` drives runs and does jobs, `all` does both.
 */
export type Role = 'all' | 'api' | 'worker'
export type KernelInfo = {
  readonly version: string
  /** Of this start of this process; no other ever has the same. */
  readonly processId: string
  /** What this process does (ROLE): requests, the work behind them, or both. */
  readonly role: Role
  /** Every operation that is served now; `path` includes its mount. */
  operations(): readonly MountedOperation[]
  /** SSE event types → the schema of their data. */
  events(): Readonly<Record<string, TSchema>>
  /** What serves now; each change of the set makes new generations. */
  plugins(): readonly {
    readonly name: string
    readonly version: string
    readonly generation: number
  }[]
  /** Asks every port and plugin; each within two seconds. */
  health(): Promise<readonly Check[]>
  /**
   * Resolves when the generations that this one replaced are undone: what they let go of may be
   * taken up.
   */
  previousDrained(): Promise<void>
  /**
   * This user's rights have changed: the callers of the user's event streams at this process are
   * checked again, now.
   */
  recheck(userId: string): void
  /** False from the moment that the stop began. */
  serving(): boolean
  /** For metrics of this plugin's own: a registry that lives as long as this generation. */
  readonly metrics: Registry
  /** All metrics, of the kernel and of every plugin that serves, in Prometheus text format. */
  exposition(): Promise<{ readonly text: string; readonly mime: string }>
}

/** One plugin and how it stands. */
export type PluginStatus = {
  readonly name: string
  readonly version: string
  readonly state: 'serving' | 'off' | 'failed'
  readonly generation: number
  /** The file with the plugin. */
  readonly source: string
  readonly previous: string | null
  /** Those that it is limited to; null: everybody. */
  readonly organisations: readonly string[] | null
  /** What it may take of the thread that it runs in; null: it runs in the process. */
  readonly isolated: ResourceLimits | null
  /** Why it failed. */
  readonly detail: string
}
/**
 * Changes which plugins serve. Each change resolves when the new set serves; calls under way end on
 * the old one. PLUGIN_REFUSED says why, and what goes on serving; NOT_FOUND for an unknown name.
 */
export type PluginRegistry = {
  /** What serves, what was taken out, and what failed. */
  list(): readonly PluginStatus[]
  /**
   * A path, or the name of one that was unloaded. It is loaded again at the next start. `replace`:
   * in place of the plugin of that name, wherever that came from. `isolated`: in a thread.
   */
  load(
    what: string,
    options?: { readonly replace?: boolean; readonly isolated?: ResourceLimits },
  ): Promise<PluginStatus>
  /** Reads it again from its files. */
  reload(name: string): Promise<PluginStatus>
  /** Back to the generation before; again: forth. */
  rollback(name: string): Promise<PluginStatus>
  /** It stays out at the next start. */
  unload(name: string): Promise<{ readonly name: string }>
  /**
   * For these organisations alone, or (null) for everybody: its operations are unknown to others,
   * its tools and the like are not offered to them. Its jobs and services go on.
   */
  enable(name: string, organisations: readonly string[] | null): Promise<PluginStatus>
  /**
   * In a thread of its own within these bounds, or (null) in the process; chosen for its next
   * starts and versions too. A thread keeps slips away from others; it is no security boundary.
   */
  isolate(name: string, bounds: ResourceLimits | null): Promise<PluginStatus>
  /** Would it load? Nothing changes. `isolated`: it is looked at in a thread. */
  check(
    path: string,
    options?: { readonly isolated?: true },
  ): Promise<{ readonly name: string; readonly version: string; readonly replaces: string | null }>
  /** Reads folders and choices again, as at a start. */
  reconcile(): Promise<{ readonly changes: readonly string[] }>
}
/** For plugins that change which plugins serve. @example plugins/operator/plugin.ts#routes */
export const Plugins = port<PluginRegistry>('plugins')

/**
 * What processes that share a storage tell each other: hints, which may be lost, and on which
 * nothing depends.
 */
export type Broadcasting = {
  /** To every other process; at once, and without waiting for anybody. */
  publish(topic: string, data: Json): void
  /** What others tell, from now on; `undo` ends it. */
  subscribe(topic: string, act: (data: Json) => void): () => void
}
/**
 * The other processes on the same storage; silent where there can be none. @example
 * plugins/runs/engine/timers.ts#startTimers
 */
export const Broadcast = port<Broadcasting>('peers')

/**
 * What the kernel knows about itself: operations, events, health, metrics. @example
 * plugins/docs/plugin.ts
 */
export const Host = port<KernelInfo>('host')
