// Append-only streams of events with gapless sequence numbers, from 1.
import { port, type Durable, type Json, type Lifecycle } from './token.ts'

/**
 * `hidden` events are the engine's own journal: they take a seq and are never shown on the wire.
 */
export type NewEvent = { readonly type: string; readonly data: Json; readonly hidden?: true }
/** `seq`: its place in the stream, from 1. */
export type LoggedEvent = NewEvent & { readonly seq: number }

/** Streams by name; one comes into being with its first event. */
export type Eventlog = {
  /**
   * The last seq after the append. With `expect`, STREAM_MOVED unless the stream stands exactly
   * there (values: `head`). All events or none.
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    options?: { readonly expect?: number },
  ): Promise<number>
  /**
   * Events with seq > after, oldest first, at most `limit` (default 1000). Sees what is applied, on
   * disk or not.
   */
  read(
    stream: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<LoggedEvent[]>
  /**
   * `first`: the oldest seq that can still be read (1 unless trimmed); `last`: 0 for an unknown
   * stream.
   */
  bounds(stream: string): Promise<{ readonly first: number; readonly last: number }>
  /**
   * Batches of events with seq > after, each once, in order, and only when they are on disk; waits
   * for more until `signal` aborts, then ends without an error.
   *  The adapter reads back what a slow reader missed instead of buffering without bound.
   */
  follow(
    stream: string,
    options: { readonly after?: number; readonly signal: AbortSignal },
  ): AsyncIterable<readonly LoggedEvent[]>
  /** Forgets events with seq <= through; seqs are never reused. */
  trim(stream: string, through: number): Promise<void>
  /**
   * Puts `events`, which tell the same in fewer, in place of those with from <= seq <= through.
   * Their own seqs rise within that range and end with `through`. All or nothing; repeating it
   * changes nothing.
   * For streams that nothing is appended to any more: from then on seqs have gaps. STREAM_MOVED
   * where the stream does not reach `through`.
   */
  rewrite(stream: string, range: Range, events: readonly LoggedEvent[]): Promise<void>
  /** The whole stream; an unknown one is no error. */
  remove(stream: string): Promise<void>
}
/** Seqs, both inclusive. */
export type Range = { readonly from: number; readonly through: number }

/** What no append may exceed (DOCUMENT_TOO_LARGE, INVALID_FIELD). */
export type EventlogLimits = {
  /** Bytes of the events of one append, as a JSON array. */
  readonly appendBytesMax: number
  /** Characters of a stream's name. */
  readonly streamNameMax: number
}

/** What an adapter offers: not scoped. */
export type EventlogEngine = Eventlog &
  Durable &
  Lifecycle & {
    readonly limits: EventlogLimits
    /**
     * Names of streams, those that were trimmed to nothing among them, in the order of their bytes:
     * those behind `after`, at most `limit`.
     */
    streams(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
    /**
     * Adds events that have their seqs already, all behind `after`, rising, with gaps where the
     * original has some. The stream stands at `after`, else STREAM_MOVED (values: `head`); an
     * unknown one begins as if trimmed through
     * `after`, with no event if `events` is empty. All or nothing. For a stream that nobody
     * follows. INVALID_FIELD for seqs that do not rise, DOCUMENT_TOO_LARGE over `appendBytesMax`.
     */
    restore(stream: string, after: number, events: readonly LoggedEvent[]): Promise<void>
  }

/** What a plugin sees: every stream lies within an organisation, and is the plugin's own. */
export type ScopedEventlog = Required<Durable> & {
  /** Whoever writes texts of others, or many events at once, splits them by these. */
  readonly limits: EventlogLimits
  /** Those of one organisation; a caller fits as it is. */
  tenant(scope: { readonly orgId: string }): Eventlog
}

/**
 * What an SSE operation reads from: append what happens, follow it from any seq. Streams are the
 * plugin's own.
 *  @example test/examples/hello-partner/greetings.js
 */
export const EventLog = port<ScopedEventlog>('eventlog')
