// A run's stream: the events that clients see and, hidden among them, the engine's own records,
// written by one driver at a time.
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
  /**
   * With everything that was written, applied or not: an append that fails ends this driver, and
   * its state with it.
   */
  readonly state: State
  /**
   * Adds records that belong together: they stand in the stream all or not at all. They go out in
   * order, one append at a time, what comes meanwhile in the next.
   * DOCUMENT_TOO_LARGE, and nothing is added, where they are more than one append may hold. Throws
   * what a former append failed with.
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
/** Of a record, what is not its data; of one of its fields, what is not a text. */
const frameBytes = 100
const fieldBytes = 30
/** A character takes no more than this as JSON. */
const charBytesMax = 6
/**
 * Up to here a bound is enough; to make JSON of each record only to weigh it would be a share of
 * every run.
 */
const boundBytesMax = 60_000

/** More than the data takes as JSON; undefined where that is not to be told at a glance. */
function boundOf(data: Readonly<Record<string, unknown>>): number | undefined {
  let bytes = frameBytes
  for (const name in data) {
    const value = data[name]
    if (typeof value === 'object' && value !== null) return undefined
    bytes +=
      name.length * charBytesMax +
      fieldBytes +
      (typeof value === 'string' ? value.length * charBytesMax : 0)
  }
  return bytes
}
/** As JSON, with the comma behind it. */
const exactBytesOf = (record: NewEvent): number => jsonBytes(record) + 1
/** No less than that: at the most for small ones. */
function bytesOf(record: NewEvent): number {
  const { data } = record
  const bound =
    typeof data === 'object' && data !== null && !Array.isArray(data) ? boundOf(data) : undefined
  return bound !== undefined && bound <= boundBytesMax ? bound : exactBytesOf(record)
}
function sum(records: readonly NewEvent[], bytes: (record: NewEvent) => number): number {
  let all = 0
  for (const record of records) all += bytes(record)
  return all
}

type Group = { readonly records: readonly NewEvent[]; readonly bytes: number }
/** The groups that go out in one append: the first, and what fits beside it. */
function batchOf(groups: readonly Group[], bytesMax: number): number {
  let bytes = 0
  let count = 0
  while (count < groups.length && (count === 0 || bytes + groups[count]!.bytes <= bytesMax))
    bytes += groups[count++]!.bytes
  return count
}

type Options = {
  /** Of one append. */ readonly bytesMax: number
  /** Hears of what was applied. */
  readonly appended?: (last: number, records: readonly NewEvent[]) => void
}

/**
 * Appends where the reader left off and nowhere else: another writer in between means that the
 * lease is lost, and STREAM_MOVED ends this driver.
 */
export function createJournal(
  log: Eventlog,
  stream: string,
  state: State,
  { bytesMax, appended = () => undefined }: Options,
): Journal {
  // Two bytes for the brackets of the array.
  const roomBytes = bytesMax - 2
  const waiting = { records: 0, bytes: 0 }
  let pending: Group[] = []
  let applied = state.head
  let flight: Promise<void> | undefined
  let failure: unknown
  const flush = async () => {
    try {
      while (pending.length > 0) {
        const groups = pending.splice(0, batchOf(pending, roomBytes))
        const records: NewEvent[] = []
        for (const group of groups) {
          records.push(...group.records)
          waiting.bytes -= group.bytes
        }
        waiting.records -= records.length
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
      const most = sum(records, bytesOf)
      const bytes = most > roomBytes ? sum(records, exactBytesOf) : most
      if (bytes > roomBytes)
        throw fault('DOCUMENT_TOO_LARGE', { collection: 'the event log', max: bytesMax })
      for (const record of records) foldOne(state, record)
      pending.push({ records, bytes })
      waiting.records += records.length
      waiting.bytes += bytes
      flight ??= flush()
    },
    failure: () => failure,
    crowded: () => waiting.records > pendingMax || waiting.bytes > bytesMax,
    async settled() {
      while (flight !== undefined) await flight
      if (failure) throw failure
    },
  }
}
