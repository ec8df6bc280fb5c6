// Writes the segments of many streams to MongoDB in few calls.
import { MongoBulkWriteError, type Collection as Kept } from 'mongodb'
import { isUnanswered, toFault } from '../../_shared/mongodb/database.ts'
import type { Segment } from './segments.ts'

type Waiting = {
  readonly segment: Segment
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/**
 * Sends appends of many streams together. Appends that come while one message is under way go with
 * the next.
 */
export function createWriter(segments: Kept<Segment>) {
  let waiting: Waiting[] = []
  let busy = false
  const send = async (batch: readonly Waiting[]) => {
    const failures = new Map<number, unknown>()
    try {
      await segments.insertMany(
        batch.map(({ segment }) => segment),
        { ordered: false },
      )
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError) || isUnanswered(error))
        return batch.forEach(({ failed }) => failed(toFault(error)))
      for (const one of [error.writeErrors].flat()) failures.set(one.index, one)
    }
    batch.forEach(({ done, failed }, at) => (failures.has(at) ? failed(failures.get(at)) : done()))
  }
  const flush = async () => {
    busy = true
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await send(batch)
    }
    busy = false
  }
  return (segment: Segment) =>
    new Promise<void>((done, failed) => {
      waiting.push({ segment, done, failed })
      if (!busy) {
        busy = true
        setImmediate(() => void flush())
      }
    })
}
