// What a script of a simulated world is, and the client that it moves.
import { hasCode, isFault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import type { Process } from '../../support/sim.ts'
import type { Behaviour } from '../model.ts'
import { caller, type ClusterOptions, type SimulatedCluster } from '../simulated-cluster.ts'

type Started = { readonly run_id: string; readonly session_id: string }
export type Actor = ReturnType<typeof actorOn>
export type Script = {
  readonly name: string
  readonly behave: Behaviour
  readonly supports?: ClusterOptions['supports']
  readonly credits?: number
  /** Takes long: a fault at each of its moments is tried by `npm run simulate` alone. */
  readonly isLong?: true
  /** Settings of the run plugin, beside those of the stage. */
  readonly env?: Readonly<Record<string, string>>
  play(actor: Actor): Promise<void>
  /** Of each run, in the order of their starts: the text of its readers, and how it ends. */
  readonly runs: readonly {
    readonly text?: string
    readonly ends: 'done' | 'cancelled' | 'error' | 'any'
    /** Calls of the tools in the world, at the most and where nothing went wrong. */
    readonly sends?: number
    /** Calls of `post`, which may happen once. */
    readonly posts?: number
    readonly pays?: number
    /** The code of its error. */
    readonly code?: string
  }[]
  /**
   * Processes that may end by what the script does, at the most, where nothing else goes wrong: two
   * that the journal knows of, and those that ended before it did.
   */
  readonly deaths?: number
}

/**
 * One client: it starts runs, reads them with its cursor, answers and cancels. What it saw is kept,
 * to be compared.
 */
export function actorOn(cluster: SimulatedCluster, client: Process) {
  const starts: Started[] = []
  const seen = new Map<string, LoggedEvent[]>()
  const broken: string[] = []
  const look = async (runId: string): Promise<readonly LoggedEvent[]> => {
    const shown = (await cluster.visible(runId)).filter(({ hidden }) => !hidden)
    const before = seen.get(runId) ?? []
    if (before.some((event, i) => JSON.stringify(event) !== JSON.stringify(shown[i])))
      broken.push(`run ${runId}: what was read before is not what is read now`)
    seen.set(runId, shown)
    return shown
  }
  return {
    starts,
    seen,
    broken,
    async start(
      message: string,
      more: { session_id?: string; plan?: boolean } = {},
    ): Promise<Started> {
      const key = `key-${starts.length}`
      const request = {
        message,
        app_name: 'main',
        kb_enhance: false,
        plan: false,
        reasoning: false,
        client_tz: 'UTC',
        ...more,
        idempotency_key: key,
      }
      const started = await cluster.ask(client, one => one.runs.start(caller, request, undefined))
      starts.push(started)
      return started
    },
    look,
    /** Reads until the event comes, or the run has ended. */
    async until(runId: string, types: readonly string[]): Promise<LoggedEvent> {
      for (;;) {
        const shown = await look(runId)
        const found =
          shown.find(({ type }) => types.includes(type)) ??
          shown.find(({ type }) => type === 'done' || type === 'error')
        if (found) return found
        await client.clock.sleep(15)
      }
    },
    respond: (runId: string, questionId: string, answer: string) =>
      cluster
        .ask(client, ({ runs }) => runs.respond(caller, runId, { question_id: questionId, answer }))
        .then(
          () => 'taken',
          (error: unknown) => {
            if (isFault(error) && error.status === 409) return 'closed'
            throw error
          },
        ),
    cancel: (runId: string) => cluster.ask(client, ({ runs }) => runs.cancel(caller, runId)),
    resumeQueue: (sessionId: string) =>
      cluster.ask(client, ({ runs }) =>
        runs.resumeQueue(caller, sessionId).catch((error: unknown) => {
          if (!hasCode(error, 'SESSION_BUSY')) throw error
        }),
      ),
    drain: () => cluster.drain(client),
    sleep: (ms: number) => client.clock.sleep(ms),
  }
}

/** Events that end a run. */
export const ends = ['done', 'error'] as const
