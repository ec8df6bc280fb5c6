// Commands that work on the whole installation, and commands as they are run: types and an identity
// function, nothing that acts.
import type { Static, TSchema } from 'typebox'
import type { Lifecycle } from '#ports/token.ts'

/** The settings that say where an installation keeps what. */
export type Places = {
  readonly DATA_DIR: string
  readonly STORAGE_URL: string
  readonly EVENTLOG_URL?: string
  readonly BLOBS_URL?: string
  readonly SEARCH_URL?: string
  readonly QUEUE_URL: string
}
/** Settings in place of those of the environment. */
export type Chosen = Partial<Omit<Places, 'DATA_DIR'>>
/** A package of adapters; `folder` is relative to DATA_DIR. */
export type AddedAdapters = { readonly folder: string }

export type Installation = {
  readonly settings: Places
  readonly env: Readonly<Record<string, string | undefined>>
  readonly adapters: {
    /** The names of all ports. */
    readonly ports: readonly string[]
    /** Where adapters lie beside the platform's own: in ADAPTERS_DIR, and what was added. */
    readonly folders: readonly string[]
    /** The packages that were added, as they were saved. */
    readonly added: readonly AddedAdapters[]
    /** Replaces `added`, for the next start. */
    save(packages: readonly AddedAdapters[]): void
    /** By which schemes the port can be bound. */
    schemesOf(port: string, folders: readonly string[]): string[]
    /** Imports an adapter; INVALID_FIELD names the setting where there is none. */
    load(port: string, setting: string, url: string, folders: readonly string[]): Promise<unknown>
  }
  /** The URL by which the port would be bound. */
  placeOf(port: string, chosen: Chosen): string
  /**
   * Binds ports as the settings choose them, with `chosen` in their place; `given` stands in for
   * adapters. Inside a server it answers what is bound there.
   */
  bind(
    chosen: Chosen,
    only: readonly string[],
    given?: Readonly<Record<string, unknown>>,
  ): Promise<{ engine<T>(port: string): T } & Required<Pick<Lifecycle, 'close'>>>
  /** Does a server run on DATA_DIR? */
  isServed(): Promise<boolean>
  /** JSON was asked for. */
  readonly json: boolean
  /** A line of what has come out so far; none where JSON was asked for. */
  print(line: string): void
  /** A line for whoever waits. */
  tell(line: string): void
}

/**
 * It is given the installation in place of the plugin's deps, and runs in the command line's
 * process. The plugin says why it may (`may.installation`).
 */
export type OfflineCommand = {
  readonly summary: string
  readonly options: TSchema
  readonly offline: true
  /** It needs the ports open: it runs inside the living server where there is one. */
  readonly joins?: true
  readonly run: (installation: Installation, options: never) => Promise<unknown>
}
/** As `command`, for one that works on the whole installation. */
export const offlineCommand = <O extends TSchema>(spec: {
  summary: string
  options: O
  offline: true
  joins?: true
  run: (installation: Installation, options: Static<O>) => Promise<unknown>
}): OfflineCommand => spec as unknown as OfflineCommand
/** A command that has its deps. */
export type RunnableCommand = {
  readonly summary: string
  readonly options: TSchema
  readonly needsServer?: true | undefined
  readonly offline?: true | undefined
  readonly joins?: true | undefined
  readonly run: (options: unknown) => Promise<unknown>
}
