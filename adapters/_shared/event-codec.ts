// Checks and encodes events, for all event logs.
import { fault } from '#contracts/faults.ts'
import type { LoggedEvent, NewEvent, Range } from '#ports/eventlog.ts'

export const appendBytesMax = 1024 * 1024
export const streamNameMax = 512
export const readDefault = 1000

export function checkStream(stream: string): void {
  if (stream === '' || stream.length > streamNameMax)
    throw fault('INVALID_FIELD', {
      field: 'stream',
      why: `a name of 1 to ${streamNameMax} characters`,
    })
}
export function checkWhole(field: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw fault('INVALID_FIELD', { field, why: `a whole number, at least ${least}` })
}

const isRewritten = (events: unknown): events is [number, NewEvent][] =>
  Array.isArray((events as unknown[])[0])

/** Encodes the events of one append. */
export function pack(events: readonly NewEvent[]): string {
  return bounded(JSON.stringify(events))
}
function bounded(body: string): string {
  if (body.length * 3 > appendBytesMax && Buffer.byteLength(body) > appendBytesMax)
    throw fault('DOCUMENT_TOO_LARGE', { collection: 'the event log', max: appendBytesMax })
  return body
}

/**
 * Encodes a rewritten range as pairs of seq and event. INVALID_FIELD unless the seqs rise within
 * the range and end with it.
 */
export function packRewritten({ from, through }: Range, events: readonly LoggedEvent[]): string {
  checkWhole('from', from, 1)
  checkWhole('through', through, from)
  let at = from - 1
  for (const { seq } of events) {
    if (!Number.isSafeInteger(seq) || seq <= at)
      throw fault('INVALID_FIELD', { field: 'events', why: `seqs that rise from ${from}` })
    at = seq
  }
  if (at !== through)
    throw fault('INVALID_FIELD', { field: 'events', why: `the last seq is ${through}` })
  return bounded(JSON.stringify(events.map(({ seq, ...event }) => [seq, event])))
}

/**
 * Encodes restored events: like an append where no seq is missing, like a rewritten range
 * otherwise. INVALID_FIELD unless the seqs rise behind `after`.
 */
export function packRestored(
  after: number,
  events: readonly LoggedEvent[],
): { readonly body: string; readonly end: number } {
  checkWhole('after', after, 0)
  const end = events.at(-1)?.seq ?? after
  if (end - after === events.length && events.every(({ seq }, at) => seq === after + 1 + at))
    return { body: pack(events.map(({ seq: _, ...event }) => event)), end }
  return { body: packRewritten({ from: after + 1, through: end }, events), end }
}

/** Decodes a segment: the events behind `after`, with their seqs. */
export function unpack(body: string, first: number, after = 0): LoggedEvent[] {
  const events = JSON.parse(body) as (NewEvent & { seq: number })[] | [number, NewEvent][]
  if (isRewritten(events))
    return events
      .filter(([seq]) => seq > after)
      .map(([seq, event]) => Object.assign(event, { seq }))
  let next = first
  for (const event of events) event.seq = next++
  return after < first ? events : events.slice(after + 1 - first)
}
