// Whose run it is, and how it stands now.
import { fault, type Caller } from '#kernel'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Status } from '../collections.ts'
import { standing } from '../sessions/enqueue.ts'

type Present = { readonly status: Status; readonly queueSeq: number }
export type Standings = ReturnType<typeof createStandings>

export function createStandings({ store }: { store: ScopedStorage }) {
  return {
    /** Throws NOT_FOUND unless the run is the caller's. */
    async find(caller: Caller, runId: string): Promise<Run> {
      const run = await store.tenant(caller).get(Runs, runId)
      if (!run || run.userId !== caller.userId) throw fault('NOT_FOUND', { what: 'run' })
      return run
    },
    /**
     * The run's status now, and its place in the queue of its session. `run`: as `ended` shows it.
     * Whoever asked again here might show an end beside what the run was before its end.
     */
    async present(run: Run): Promise<Present> {
      const isWaiting =
        run.phase === 'placed' && (run.status === 'queued' || run.status === 'blocked')
      const session = isWaiting ? await store.tenant(run).get(Sessions, run.sessionId) : undefined
      const stands = session && standing(session, run.id)
      return stands ?? { status: isWaiting ? 'running' : run.status, queueSeq: 0 }
    },
  }
}
