// The writer of a run's stream. It holds the events that clients see and, hidden among them, the
// engine's own records. One driver writes at a time.
import { fault } from '#kernel'
import type { Eventlog, NewEvent } from '#ports/eventlog.ts'
import { jsonBytes } from './bytes.ts'
import { foldOne } from './fold.ts'
import { emptyState, type State } from './state.ts'

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
   * Includes every record that was written, applied or not. If an append fails, this driver ends,
   * and its state is dropped.
   */
  readonly state: State
  /**
   * Adds records that belong together: the stream holds all of them or none. Appends go out in
   * order, one at a time; records that come meanwhile wait for the next one.
   * Throws DOCUMENT_TOO_LARGE, and adds nothing, where they are more than one append may hold.
   * Throws the error of a former append that failed.
   */
  write(...records: NewEvent[]): void
  /** The error of an append that failed. After it this driver can write nothing more. */
  failure(): unknown
  /** Whether so many records wait that the writer should pause. */
  crowded(): boolean
  /** Resolves when all that was written is applied. */
  settled(): Promise<void>
}

/** How many records may wait for their append before the writer pauses. */
const pendingMax = 256
/** Upper bounds in bytes: of a record without its data, and of a field without its text. */
const frameBytes = 100
const fieldBytes = 30
/** The most bytes that one character takes as JSON. */
const charBytesMax = 6
/**
 * Up to this size an upper bound is enough. Serialising each record only to measure it would cost a
 * noticeable share of every run.
 */
const boundBytesMax = 60_000

/**
 * An upper bound for the data's bytes as JSON. Undefined where a field is an array or an object.
 */
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
/** The exact bytes as JSON, with the comma behind the record. */
const exactBytesOf = (record: NewEvent): number => jsonBytes(record) + 1
/** The exact bytes, or an upper bound for a small record. */
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
/** The number of groups that go out in one append: the first, and those that fit beside it. */
function batchOf(groups: readonly Group[], bytesMax: number): number {
  let bytes = 0
  let count = 0
  while (count < groups.length && (count === 0 || bytes + groups[count]!.bytes <= bytesMax))
    bytes += groups[count++]!.bytes
  return count
}

type Options = {
  /** Bytes of one append. */ readonly bytesMax: number
  /** Is told of each applied append. */
  readonly appended?: (last: number, records: readonly NewEvent[]) => void
}

/**
 * Appends right after the last record that was read. If another driver wrote in between, the lease
 * is lost, and STREAM_MOVED ends this driver.
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
