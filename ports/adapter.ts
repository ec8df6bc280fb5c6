// The shape of an adapter, which is the default export of `adapters/<port>/<scheme>.ts`.
import type { Clock } from './clock.ts'

/**
 * Writes one log line. `event` is two words with a dot between them. `fields` are JSON and hold no
 * secrets.
 */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** What the kernel gives an adapter when it opens the adapter. */
export type AdapterContext = {
  /** The setting's value, its scheme included. Secrets in it never reach a log or an error. */
  readonly url: URL
  /** Absolute; relative paths in the URL are resolved against the working directory. */
  readonly dataDir: string
  /** The only source of time and randomness. */
  readonly clock: Clock
  readonly log: Log
  /**
   * Reads a credential from the environment: the variable of that name, or the content of the file
   * that `<name>_FILE` names. A credential is never part of a URL, a log or an error.
   */
  secret(name: string): string | undefined
  /**
   * The unscoped engine of another port. The kernel opened that port before this one, because
   * `needs` names it.
   */
  engine<T>(name: string): T
}
/** An adapter as a value. */
export type Adapter<T = unknown> = {
  /** The port's name, which is also the name of the adapter's folder. */
  readonly port: string
  /** The scheme of the URL without the colon, which is also the name of the adapter's file. */
  readonly scheme: string
  /** Names of other ports whose engines this adapter uses. */
  readonly needs?: readonly string[]
  /**
   * The adapter loses its data when the process ends, so checks do not ask whether data survives.
   */
  readonly ephemeral?: true
  /** Only one process at a time can open it, so checks do not ask how two processes interact. */
  readonly exclusive?: true
  /**
   * The adapter uses its server's clock instead of the context's clock, so checks cannot move its
   * time.
   */
  readonly externalClock?: true
  /**
   * Query parameters of the URL: name → meaning and default. The kernel refuses an unknown
   * parameter.
   */
  readonly options?: Readonly<Record<string, string>>
  /**
   * Resolves with the port's engine when the engine can serve. Rejects with UNAVAILABLE, or with
   * INVALID_FIELD for a mistake in the URL.
   */
  open(opening: AdapterContext): Promise<T>
}
/** Declares an adapter. An adapter is a value, as a plugin is. */
export const defineAdapter = <T>(adapter: Adapter<T>): Adapter<T> => adapter
