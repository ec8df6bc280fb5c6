// What the engine keeps: a document a run, a document a session. The run's events and journal are
// its stream.
import type { Json } from '#kernel'
import type { Model, Price } from '#ports/models.ts'
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
/** `number`: of the question, in the order in which they were asked, from 0. */
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
   * The lease: who drives, how often it changed hands, and a count that moves while the driver
   * lives.
   */
  readonly owner?: string
  readonly epoch: number
  readonly beat: number
  readonly request: RunStart
  /** Of a request with a key, so that one key cannot mean two requests. */
  readonly fingerprint?: string
  readonly idempotencyKey?: string
  readonly opensSession: boolean
  readonly messageId: string
  readonly answerId: string
  readonly model: string
  readonly price: Price
  /**
   * What the run depends on, as it was when it was admitted: later changes of the agent or of the
   * catalogue do not reach a run under way.
   */
  readonly terms: Terms
  readonly hold: number
  /** What the start was answered with, so that a repetition gets the same. */
  readonly placedAs?: 'running' | 'queued' | 'blocked'
  readonly queueSeq?: number
  readonly cancelAsked?: boolean
  /**
   * When the sweep must look at it, in milliseconds since the epoch: 0 while it is being admitted
   * or driven, the deadline of its question while it waits for the user; absent while others will
   * wake it.
   */
  readonly due?: number
  /**
   * Grows when somebody is about to wake the run from its queue: nobody takes it off the sweep's
   * list on older knowledge.
   */
  readonly wakes: number
  /** Questions that were answered or expired: grows with each, so that no two come at once. */
  readonly replies: number
  /** Of these, what the journal may not have yet: the driver takes them over. */
  readonly replied?: readonly Reply[]
  /** The same of a run whose questions were answered by an earlier version. */
  readonly reply?: Reply
  /** What led to it, as a W3C `traceparent`, where that is traced. */
  readonly trace?: string
  readonly createdAt: number
  readonly endedAt?: number
  /** An excerpt where it is long. */
  readonly answer?: string
  /** Texts of which this document holds an excerpt, and a stream of their own the whole. */
  readonly long?: readonly LongText[]
  /** The conversation was cut back to the request: its answer is not part of it any more. */
  readonly answerCut?: boolean
  readonly credits?: number
  /**
   * When retention must look at the closed run, in milliseconds since the epoch; absent when
   * nothing is left to do.
   */
  readonly tidy?: number
  /** Its log was made small. */
  readonly compacted?: boolean
  /**
   * What its events took then, in bytes of JSON, and when it ended, in milliseconds since the
   * epoch; absent when they were forgotten.
   */
  readonly keptBytes?: number
  readonly keptSince?: number
  /**
   * Set until the search index holds what the closed run says now, in milliseconds since the epoch.
   */
  readonly unindexed?: number
  /** A run that was taken over into a fork: nobody drove it, and it has no log. */
  readonly copied?: true
  /** Of a copy: the run that has its texts. Absent when the copy has inherited them. */
  readonly source?: string
}
export type Session = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly title: string
  readonly appName: string
  /**
   * The greatest id of its runs: the next one's is greater, whatever the clocks of the processes
   * say.
   */
  readonly latest: string
  /** The run in progress; absent when there is none. */
  readonly active?: string
  readonly queue: readonly string[]
  /** Length of `queue`, for conditions. */
  readonly queued: number
  readonly paused: boolean
  /** Counts the changes of `queue`: a condition on it means this very queue. */
  readonly rev: number
  readonly deleting?: boolean
  /** Set until the search index holds its title, in milliseconds since the epoch. */
  readonly unindexed?: number
  readonly createdAt: number
  readonly updatedAt: number
}

/**
 * What the events of an organisation's ended runs take, by its id. A hint: whoever is over the
 * bound by it is counted anew.
 */
export type KeptEvents = { readonly id: string; readonly orgId: string; readonly bytes: number }

/** What lies under the prefix in the search index is to be taken out of it. */
export type SearchRemoval = {
  readonly id: string
  readonly orgId: string
  readonly prefix: string
  readonly createdAt: number
}
/**
 * How far the conversations of before have been written into the search index: the last run's id.
 */
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

/** Why it looks across organisations, beside what single files say. */
export const sweepReason = 'sweep: runs that nobody drives, of every organisation'

export const streamOf = (runId: string) => `run:${runId}`
export const textStreamOf = (runId: string, which: LongText) => `text:${which}:${runId}`
/** Everything that the event log holds of a run. */
export const streamsOf = ({ id, long = [] }: Pick<Run, 'id' | 'long'>): string[] => [
  streamOf(id),
  ...long.map(which => textStreamOf(id, which)),
]
