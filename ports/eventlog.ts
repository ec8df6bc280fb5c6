// Append-only streams of events with gapless sequence numbers, from 1.
import { port, type Durable, type Json, type Lifecycle } from './token.ts'

/** `hidden` events are the engine's journal. They take a seq, and clients never see them. */
export type NewEvent = { readonly type: string; readonly data: Json; readonly hidden?: true }
/** `seq`: the event's place in the stream, from 1. */
export type LoggedEvent = NewEvent & { readonly seq: number }

/** Streams by name. The first append creates a stream. */
export type Eventlog = {
  /**
   * Appends all events or none, and answers the last seq. With `expect`, the stream's last seq must
   * be `expect`, else STREAM_MOVED (values: `head`).
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    options?: { readonly expect?: number },
  ): Promise<number>
  /**
   * Events with seq > after, oldest first, at most `limit` (default 1000). Includes events that are
   * not on disk yet.
   */
  read(
    stream: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<LoggedEvent[]>
  /**
   * `first`: the oldest seq that can be read, 1 unless the stream was trimmed. `last`: 0 for an
   * unknown stream.
   */
  bounds(stream: string): Promise<{ readonly first: number; readonly last: number }>
  /**
   * Follows the stream: batches of events with seq > after, each event once, in order, and only
   * when it is on disk. Waits for more until `signal` aborts, then ends without an error. The
   * adapter does not buffer for a slow reader without bound; it reads missed events back.
   */
  follow(
    stream: string,
    options: { readonly after?: number; readonly signal: AbortSignal },
  ): AsyncIterable<readonly LoggedEvent[]>
  /** Removes events with seq <= through. Their seqs are never used again. */
  trim(stream: string, through: number): Promise<void>
  /**
   * Replaces the events with from <= seq <= through by `events`, which say the same with fewer
   * events. The new seqs rise within that range and end with `through`. All or nothing; repeating
   * it changes nothing. Only for streams that have ended: from then on their seqs have gaps.
   * STREAM_MOVED when the stream does not reach `through`.
   */
  rewrite(stream: string, range: Range, events: readonly LoggedEvent[]): Promise<void>
  /** Removes the whole stream. An unknown stream is no error. */
  remove(stream: string): Promise<void>
}
/** A range of seqs, both ends inclusive. */
export type Range = { readonly from: number; readonly through: number }

/** Limits of one append; beyond them DOCUMENT_TOO_LARGE or INVALID_FIELD. */
export type EventlogLimits = {
  /** Bytes of the events of one append, written as a JSON array. */
  readonly appendBytesMax: number
  /** Characters of a stream's name. */
  readonly streamNameMax: number
}

/** The event log that an adapter implements. It is not scoped to organisations. */
export type EventlogEngine = Eventlog &
  Durable &
  Lifecycle & {
    readonly limits: EventlogLimits
    /**
     * Names of streams, sorted by bytes: those behind `after`, at most `limit`. Includes streams
     * that were trimmed to nothing.
     */
    streams(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
    /**
     * Adds events that already have seqs. The seqs rise, are all behind `after`, and keep the gaps
     * of the original. The stream must stand at `after`, else STREAM_MOVED (values: `head`). An
     * unknown stream begins as if it was trimmed through `after`, even when `events` is empty. All
     * or nothing. Nobody may follow the stream. INVALID_FIELD for seqs that do not rise,
     * DOCUMENT_TOO_LARGE over `appendBytesMax`.
     */
    restore(stream: string, after: number, events: readonly LoggedEvent[]): Promise<void>
  }

/** The event log that a plugin sees. Each stream belongs to one organisation and to this plugin. */
export type ScopedEventlog = Required<Durable> & {
  /** The adapter's limits. A plugin that writes long texts or many events splits them by these. */
  readonly limits: EventlogLimits
  /** The streams of one organisation. A caller can be passed as the scope. */
  tenant(scope: { readonly orgId: string }): Eventlog
}

/**
 * Where an SSE operation reads from: append events, and follow them from any seq. A plugin has
 * streams of its own.
 *  @example test/examples/hello-partner/greetings.js
 */
export const EventLog = port<ScopedEventlog>('eventlog')
