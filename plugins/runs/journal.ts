// A run's stream: the events that clients see and, hidden among them, the engine's own records, written by one driver at a time.
import { fault } from '#kernel'
import type { Eventlog, NewEvent } from '#ports/eventlog.ts'
import { jsonBytes } from './bytes.ts'
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
  /**
   * Adds records that belong together: they stand in the stream all or not at all. They go out in order, one append at a time, what comes meanwhile in the next.
   * DOCUMENT_TOO_LARGE, and nothing is added, where they are more than one append may hold. Throws what a former append failed with.
   */
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
/** Of a fragment of text, what is not the text: its type, step and attempt. */
const frameBytes = 200
/** A character takes no more than this as JSON. */
const charBytesMax = 6

/** Bytes of a record as JSON with the comma behind it: exactly, but for fragments of text, of which there are many, at the most. */
function bytesOf(record: NewEvent): number {
  const { text } = (record.data ?? {}) as { text?: unknown }
  const isFragment = record.type === 'token' || record.type === 'reasoning'
  return isFragment && typeof text === 'string' && text.length < 10_000 ? text.length * charBytesMax + frameBytes : jsonBytes(record) + 1
}

type Group = { readonly records: readonly NewEvent[]; readonly bytes: number }
/** The groups that go out in one append: the first, and what fits beside it. */
function batchOf(groups: readonly Group[], bytesMax: number): number {
  let bytes = 0, count = 0
  while (count < groups.length && (count === 0 || bytes + groups[count]!.bytes <= bytesMax)) bytes += groups[count++]!.bytes
  return count
}

type Options = { /** Of one append. */ readonly bytesMax: number; /** Hears of what was applied. */ readonly appended?: (last: number, records: readonly NewEvent[]) => void }

/** Appends where the reader left off and nowhere else: another writer in between means that the lease is lost, and STREAM_MOVED ends this driver. */
export function createJournal(log: Eventlog, stream: string, state: State, { bytesMax, appended = () => undefined }: Options): Journal {
  // Two bytes for the brackets of the array.
  const roomBytes = bytesMax - 2
  let pending: Group[] = [], waiting = { records: 0, bytes: 0 }, applied = state.head
  let flight: Promise<void> | undefined, failure: unknown
  const flush = async () => {
    try {
      while (pending.length > 0) {
        const groups = pending.splice(0, batchOf(pending, roomBytes)), records = groups.flatMap(group => group.records)
        waiting = { records: waiting.records - records.length, bytes: waiting.bytes - groups.reduce((sum, { bytes }) => sum + bytes, 0) }
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
      const bytes = records.reduce((sum, record) => sum + bytesOf(record), 0)
      if (bytes > roomBytes) throw fault('DOCUMENT_TOO_LARGE', { collection: 'the event log', max: bytesMax })
      for (const record of records) foldOne(state, { ...record, seq: state.head + 1 })
      pending.push({ records, bytes })
      waiting = { records: waiting.records + records.length, bytes: waiting.bytes + bytes }
      flight ??= flush()
    },
    failure: () => failure,
    crowded: () => waiting.records > pendingMax || waiting.bytes > bytesMax,
    async settled() {
      while (flight) await flight
      if (failure) throw failure
    },
  }
}
