// What the engine keeps: a document a run, a document a session. The run's events and journal are its stream.
import type { Price } from '#ports/models.ts'
import { collection } from '#ports/storage.ts'
import type { RunStart } from '#contracts/runs.ts'

export type Phase = 'admitting' | 'placed' | 'closed'
export type Status = 'running' | 'queued' | 'blocked' | 'waiting' | 'done' | 'failed' | 'cancelled'
export type Run = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly sessionId: string
  readonly phase: Phase
  readonly status: Status
  /** The lease: who drives, how often it changed hands, and a count that moves while the driver lives. */
  readonly owner?: string
  readonly epoch: number
  readonly beat: number
  readonly request: RunStart
  /** Of the request, so that one key cannot mean two requests. */
  readonly fingerprint: string
  readonly idempotencyKey?: string
  readonly opensSession: boolean
  readonly messageId: string
  readonly answerId: string
  readonly model: string
  readonly price: Price
  readonly hold: number
  /** What the start was answered with, so that a repetition gets the same. */
  readonly placedAs?: 'running' | 'queued' | 'blocked'
  readonly queueSeq?: number
  readonly cancelAsked?: boolean
  readonly createdAt: number
  readonly endedAt?: number
  readonly answer?: string
  readonly credits?: number
}
export type Session = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly title: string
  readonly appName: string
  /** The run in progress; absent when there is none. */
  readonly active?: string
  readonly queue: readonly string[]
  /** Length of `queue`, for conditions. */
  readonly queued: number
  readonly paused: boolean
  /** Counts the changes of `queue`: a condition on it means this very queue. */
  readonly rev: number
  readonly deleting?: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

export const Runs = collection<Run>({
  name: 'runs', scope: 'tenant', owner: 'userId',
  unique: [['orgId', 'userId', 'idempotencyKey']], index: [['orgId', 'sessionId'], ['phase']],
})
export const Sessions = collection<Session>({ name: 'sessions', scope: 'tenant', owner: 'userId', index: [['orgId', 'userId', 'updatedAt']] })

export const streamOf = (runId: string) => `run:${runId}`
