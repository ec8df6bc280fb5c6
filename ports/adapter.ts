// How an adapter presents itself: the default export of `adapters/<port>/<scheme>.ts`.
import type { Clock } from './clock.ts'

/** `event`: two words with a dot between them; `fields` as JSON, secrets never. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** What an adapter is opened with. */
export type AdapterContext = {
  /** The setting's value, its scheme included. Secrets in it never reach a log or an error. */
  readonly url: URL
  /** Absolute; relative paths in the URL are resolved against the working directory. */
  readonly dataDir: string
  /** The only source of time and randomness. */
  readonly clock: Clock
  readonly log: Log
  /**
   * A credential from the environment: the variable of that name, or the content of the file that
   * `<name>_FILE` names. Never part of a URL, a log or an error.
   */
  secret(name: string): string | undefined
  /** The engine of another port (unscoped), opened before this one; named in `needs`. */
  engine<T>(name: string): T
}
/** An adapter as a value. */
export type Adapter<T = unknown> = {
  /** The port's name, which is its folder's. */
  readonly port: string
  /** What the URL begins with, without the colon, which is its file's name. */
  readonly scheme: string
  /** Names of ports on which it rides. */
  readonly needs?: readonly string[]
  /** What it keeps ends with the process: a check does not ask whether it survives. */
  readonly ephemeral?: true
  /** One process at a time has it open: a check does not ask what two do to each other. */
  readonly exclusive?: true
  /**
   * It goes by a clock of its own (its server's), not by the opening's: a check cannot move its
   * time.
   */
  readonly externalClock?: true
  /**
   * Query parameters of the URL: name → what it means and its default. An unknown one is refused.
   */
  readonly options?: Readonly<Record<string, string>>
  /**
   * Resolves with the port's engine when it can serve; UNAVAILABLE, or INVALID_FIELD for what the
   * URL says.
   */
  open(opening: AdapterContext): Promise<T>
}
/** An adapter is a value, as a plugin is. */
export const defineAdapter = <T>(adapter: Adapter<T>): Adapter<T> => adapter
