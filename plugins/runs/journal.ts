// A run's stream: the events that clients see and, hidden among them, the engine's own records, written by one driver at a time.
import type { Eventlog, NewEvent } from '#ports/eventlog.ts'
import { emptyState, foldOne, type State } from './state.ts'

/** Reads the whole stream in bounded pages. */
export async function readState(log: Eventlog, stream: string): Promise<State> {
  const state = emptyState()
  for (;;) {
    const page = await log.read(stream, { after: state.head, limit: 1000 })
    page.forEach(record => foldOne(state, record))
    if (page.length === 0) return state
  }
}

export type Journal = {
  /** With everything that was written, applied or not: an append that fails ends this driver, and its state with it. */
  readonly state: State
  /** Adds records; they go out in order, one append at a time, what comes meanwhile in the next. Throws what a former append failed with. */
  write(...records: NewEvent[]): void
  /** What an append failed with: nothing more can be written by this driver. */
  failure(): unknown
  /** So much waits that the writer should pause. */
  crowded(): boolean
  /** Resolves when all that was written is applied. */
  settled(): Promise<void>
}

/** How many records may wait for their append before the writer pauses. */
const pendingMax = 256

/** `appended` hears of what was applied. Appends where the reader left off and nowhere else: another writer in between means that the lease is lost, and STREAM_MOVED ends this driver. */
export function createJournal(log: Eventlog, stream: string, state: State, appended: (last: number, records: readonly NewEvent[]) => void = () => undefined): Journal {
  let pending: NewEvent[] = [], applied = state.head, flight: Promise<void> | undefined, failure: unknown
  const flush = async () => {
    try {
      while (pending.length > 0) {
        const records = pending
        pending = []
        await log.append(stream, records, { expect: applied })
        applied += records.length
        appended(applied, records)
      }
    } catch (error) {
      failure = error
    } finally {
      flight = undefined
    }
  }
  return {
    state,
    write(...records) {
      if (failure) throw failure
      for (const record of records) foldOne(state, { ...record, seq: state.head + 1 })
      pending.push(...records)
      flight ??= flush()
    },
    failure: () => failure,
    crowded: () => pending.length > pendingMax,
    async settled() {
      while (flight) await flight
      if (failure) throw failure
    },
  }
}
