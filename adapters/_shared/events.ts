// What both event logs check and how they pack.
import { fault } from '#contracts/faults.ts'
import type { LoggedEvent, NewEvent } from '#ports/eventlog.ts'

export const appendBytesMax = 1024 * 1024
export const streamNameMax = 512
export const readDefault = 1000

export function checkStream(stream: string): void {
  if (stream === '' || stream.length > streamNameMax) throw fault('INVALID_FIELD', { field: 'stream', why: `a name of 1 to ${streamNameMax} characters` })
}
export function checkWhole(field: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least) throw fault('INVALID_FIELD', { field, why: `a whole number, at least ${least}` })
}

/** The events of one append as they are kept. */
export function pack(events: readonly NewEvent[]): string {
  const body = JSON.stringify(events)
  if (body.length * 3 > appendBytesMax && Buffer.byteLength(body) > appendBytesMax) throw fault('DOCUMENT_TOO_LARGE', { collection: 'the event log', max: appendBytesMax })
  return body
}

/** The events of a segment with their numbers, those after `after` only. */
export function unpack(body: string, first: number, after = 0): LoggedEvent[] {
  const events = JSON.parse(body) as (NewEvent & { seq: number })[]
  let seq = first
  for (const event of events) event.seq = seq++
  return after < first ? events : events.slice(after + 1 - first)
}
