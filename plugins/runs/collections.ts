// The engine's documents: one for each run, one for each session. A run's stream holds its events
// and its journal.
import type { Json } from '#kernel'
import type { Model, Price, Usage } from '#ports/models.ts'
import { collection } from '#ports/storage.ts'
import type { RunStart } from '#contracts/runs.ts'

export type LongText = 'message' | 'answer'
export type Phase = 'admitting' | 'placed' | 'closed'
export type Status = 'running' | 'queued' | 'blocked' | 'waiting' | 'done' | 'failed' | 'cancelled'
export type Terms = {
  /** Who runs the model; absent in runs of earlier versions. */
  readonly provider?: string
  readonly supports: Model['supports']
  readonly contextTokens: number
  readonly outputTokensMax: number
  readonly instruction: string
  readonly tools?: readonly string[]
  readonly onInterrupt: 'continue' | 'restart'
}
/** `number`: the question's number, counted from 0 in the order of asking. */
export type Reply = {
  readonly number: number
  readonly status: 'answered' | 'expired'
  readonly answer: Json
}
export type Run = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly sessionId: string
  readonly phase: Phase
  readonly status: Status
  /**
   * The lease: who drives, how often the lease changed hands, and a count that grows while the
   * driver lives.
   */
  readonly owner?: string
  readonly epoch: number
  readonly beat: number
  readonly request: RunStart
  /** A hash of a request with an idempotency key, so that one key cannot mean two requests. */
  readonly fingerprint?: string
  readonly idempotencyKey?: string
  readonly opensSession: boolean
  readonly messageId: string
  readonly answerId: string
  readonly model: string
  readonly price: Price
  /**
   * The terms on which the run was admitted. Later changes of the agent or of the catalogue do not
   * reach a run under way.
   */
  readonly terms: Terms
  readonly hold: number
  /** The status that the start was answered with. A repeated start gets the same answer. */
  readonly placedAs?: 'running' | 'queued' | 'blocked'
  readonly queueSeq?: number
  readonly cancelAsked?: boolean
  /**
   * When the sweep must look at the run, in milliseconds since the epoch. 0 while it is being
   * admitted or driven; the deadline of its question while it waits for the user.
   * Absent while another run or a user will wake it.
   */
  readonly due?: number
  /**
   * Grows when another run or a user is about to wake the run from its queue. A process that read
   * an older value may not take the run off the sweep's list.
   */
  readonly wakes: number
  /**
   * The number of questions that were answered or expired. It grows with each, and a condition on
   * it lets only one writer through.
   */
  readonly replies: number
  /** The replies that the journal may lack. The driver takes them over. */
  readonly replied?: readonly Reply[]
  /** A reply that an earlier version stored, before there was `replied`. */
  readonly reply?: Reply
  /** The trace that led to the run, as a W3C `traceparent`, where that is traced. */
  readonly trace?: string
  readonly createdAt: number
  readonly endedAt?: number
  /** The answer; an excerpt where the answer is long. */
  readonly answer?: string
  /** Texts that this document holds as excerpts. A stream for each holds the whole text. */
  readonly long?: readonly LongText[]
  /** The conversation was cut back to the request: the answer is no longer part of it. */
  readonly answerCut?: boolean
  readonly credits?: number
  /** What the run used and why it failed. Absent in runs that ended in an earlier version. */
  readonly usage?: Usage
  readonly error?: { readonly code: string; readonly detail: string }
  /**
   * When retention must look at the closed run, in milliseconds since the epoch. Absent when
   * nothing is left to do.
   */
  readonly tidy?: number
  /** The run's log was compacted. */
  readonly compacted?: boolean
  /**
   * `keptBytes`: bytes of the compacted events, as JSON. `keptSince`: when the run ended, in
   * milliseconds since the epoch. Absent once the events were removed.
   */
  readonly keptBytes?: number
  readonly keptSince?: number
  /**
   * When the closed run last changed, in milliseconds since the epoch. Removed once the search
   * index holds its texts.
   */
  readonly unindexed?: number
  /** A run that was copied into a fork: nobody drove it, and it has no log. */
  readonly copied?: true
  /** For a copy: the run that holds its texts. Absent when the copy has inherited them. */
  readonly source?: string
}
export type Session = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly title: string
  readonly appName: string
  /**
   * The greatest id of the session's runs. The next run gets a greater id, whatever the clocks of
   * the processes say.
   */
  readonly latest: string
  /** The run in progress; absent when there is none. */
  readonly active?: string
  readonly queue: readonly string[]
  /** Length of `queue`, for conditions. */
  readonly queued: number
  readonly paused: boolean
  /**
   * Counts the changes of `queue`. A condition on `rev` means that the queue has not changed since.
   */
  readonly rev: number
  readonly deleting?: boolean
  /**
   * When the title last changed, in milliseconds since the epoch. Removed once the search index
   * holds it.
   */
  readonly unindexed?: number
  readonly createdAt: number
  readonly updatedAt: number
}
/** The queue of a new session. */
export const emptyQueue = () => ({ queue: [], queued: 0, paused: false, rev: 0 })

/**
 * How many bytes the events of an organisation's ended runs take. The id is the organisation's. The
 * figure is a hint: where it exceeds the bound, it is counted anew.
 */
export type KeptEvents = { readonly id: string; readonly orgId: string; readonly bytes: number }

/** An intent: passages under the prefix are to be removed from the search index. */
export type SearchRemoval = {
  readonly id: string
  readonly orgId: string
  readonly prefix: string
  readonly createdAt: number
}
/** How far the backfill of the search index has come. `after` is the last run's id. */
export type SearchProgress = { readonly id: string; readonly after: string; readonly done: boolean }

export const Runs = collection<Run>({
  name: 'runs',
  scope: 'tenant',
  global: true,
  owner: 'userId',
  unique: [['orgId', 'userId', 'idempotencyKey']],
  index: [
    ['orgId', 'sessionId'],
    ['due'],
    ['tidy'],
    ['orgId', 'keptSince'],
    ['unindexed'],
    ['source'],
  ],
})
export const EventBytes = collection<KeptEvents>({
  name: 'event_bytes',
  scope: 'tenant',
  global: true,
  index: [['bytes']],
})
export const Sessions = collection<Session>({
  name: 'sessions',
  scope: 'tenant',
  global: true,
  owner: 'userId',
  index: [['orgId', 'userId', 'updatedAt'], ['unindexed']],
})
export const SearchRemovals = collection<SearchRemoval>({
  name: 'search_removals',
  scope: 'tenant',
  index: [['createdAt']],
})
export const SearchProgresses = collection<SearchProgress>({
  name: 'search_progress',
  scope: 'platform',
})

/**
 * The reason for system access to runs of every organisation. Other reasons stand in the files that
 * use them.
 */
export const sweepReason = 'sweep: runs that nobody drives, of every organisation'

export const streamOf = (runId: string) => `run:${runId}`
export const textStreamOf = (runId: string, which: LongText) => `text:${which}:${runId}`
/** Everything that the event log holds of a run. */
export const streamsOf = ({ id, long = [] }: Pick<Run, 'id' | 'long'>): string[] => [
  streamOf(id),
  ...long.map(which => textStreamOf(id, which)),
]
