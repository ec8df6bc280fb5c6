// The audit log of tool calls: who called what, when, and how it ended. It outlives the run's
// events and the session.
import { hasCode } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import { collection, type ScopedStorage } from '#ports/storage.ts'
import type { Effect } from '../api.ts'
import type { Run } from '../collections.ts'
import type { ToolStatus } from '../journal/state.ts'

export type ToolInvocation = {
  /** The call's key: every try of one call is one invocation. */
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly sessionId: string
  readonly runId: string
  readonly step: number
  readonly tool: string
  readonly effect: Effect
  /** Stays `begun` where the process died before the call's end. */
  readonly status: 'begun' | ToolStatus
  readonly startedAt: number
  readonly endedAt?: number
}
export const ToolInvocations = collection<ToolInvocation>({
  name: 'tool_invocations',
  scope: 'tenant',
  global: true,
  owner: 'userId',
  index: [['orgId', 'runId']],
})

type Called = {
  readonly key: string
  readonly tool: string
  readonly effect: Effect
  readonly step: number
}
export type AuditLog = ReturnType<typeof createAuditLog>

export function createAuditLog({ store, clock }: { store: ScopedStorage; clock: Clock }) {
  /** A further try of a call finds its record, and keeps it. */
  const insert = async (one: ToolInvocation): Promise<void> => {
    try {
      await store.tenant(one).insert(ToolInvocations, one)
    } catch (error) {
      if (!hasCode(error, 'DUPLICATE')) throw error
    }
  }
  return {
    async began(
      { orgId, userId, sessionId, id: runId }: Run,
      { key, tool, effect, step }: Called,
    ): Promise<void> {
      await insert({
        id: key,
        orgId,
        userId,
        sessionId,
        runId,
        step,
        tool,
        effect,
        status: 'begun',
        startedAt: clock.now(),
      })
    },
    /**
     * Records a call whose body never ran. There was no such tool, its arguments did not match, or
     * the user declined.
     */
    async refused(
      { orgId, userId, sessionId, id: runId }: Run,
      { key, tool, effect, step }: Called,
      status: ToolStatus,
    ): Promise<void> {
      const at = clock.now()
      await insert({
        id: key,
        orgId,
        userId,
        sessionId,
        runId,
        step,
        tool,
        effect,
        status,
        startedAt: at,
        endedAt: at,
      })
    },
    async ended({ orgId }: Run, key: string, status: ToolStatus): Promise<void> {
      await store
        .tenant({ orgId })
        .update(
          ToolInvocations,
          key,
          { set: { status, endedAt: clock.now() } },
          { if: { status: 'begun' } },
        )
    },
  }
}
