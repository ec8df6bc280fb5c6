// Compacts the log of an ended run: the fragments of each stretch of text become one record. The
// record keeps where each fragment ended.
// So a reader that comes back in the middle of a stretch gets exactly the rest.
import type { Json } from '#kernel'
import type { Eventlog, LoggedEvent } from '#ports/eventlog.ts'

type Text = { readonly text: string; readonly step: number; readonly attempt: number }
/**
 * `lengths`: the characters that each seq of the stretch brought. The last of these seqs is the
 * record's own.
 */
type Stretch = Text & { readonly lengths?: readonly number[] }
type Open = {
  readonly type: string
  seq: number
  text: string
  lengths: number[]
  readonly step: number
  readonly attempt: number
}

const textTypes = new Set(['token', 'reasoning'])
/** The type of record that is needed only to resume a model call that broke off. */
const forRecovery = 'checkpoint@1'
/** Characters of JSON that are rewritten at a time. One record holds about as many at most. */
const stretchMax = 200_000
const pageEvents = 1000

const stretchOf = ({ type, data }: LoggedEvent): Stretch | undefined =>
  textTypes.has(type) ? (data as unknown as Stretch) : undefined

/** The number of seqs that the event stands for. */
export const spanOf = (event: LoggedEvent): number => stretchOf(event)?.lengths?.length ?? 1

/**
 * Returns the part of the event that a reader has not seen, where `after` is the last seq that the
 * reader saw. Undefined: nothing is left of it.
 */
export function unseen(event: LoggedEvent, after: number): LoggedEvent | undefined {
  const stretch = stretchOf(event)
  if (!stretch?.lengths) return event
  const { lengths, ...data } = stretch
  const seen = Math.max(0, after - (event.seq - lengths.length))
  const text = data.text.slice(lengths.slice(0, seen).reduce((sum, length) => sum + length, 0))
  return text === '' && seen > 0 ? undefined : { ...event, data: { ...data, text } as Json }
}

/** Returns what clients may see of a batch, where `after` is the last seq that the reader saw. */
export const shown = (batch: readonly LoggedEvent[], after: number): LoggedEvent[] =>
  batch.flatMap(event => (event.hidden ? [] : (unseen(event, after) ?? [])))

/**
 * Merges the fragments that `add` receives in order. `take` returns the merged records and empties
 * the merger.
 */
export function createMerger() {
  let merged: LoggedEvent[] = []
  let open: Open | undefined
  let size = 0
  const close = () => {
    if (!open) return
    const { type, seq, lengths, text, step, attempt } = open
    merged.push({
      seq,
      type,
      data: { text, step, attempt, ...(lengths.length > 1 ? { lengths } : {}) },
    })
    open = undefined
  }
  return {
    add(event: LoggedEvent): void {
      const stretch = stretchOf(event)
      if (stretch) {
        const { text, step, attempt, lengths = [text.length] } = stretch
        size += text.length
        if (open && open.type === event.type && open.step === step && open.attempt === attempt) {
          open.text += text
          for (const length of lengths) open.lengths.push(length)
          open.seq = event.seq
          return
        }
        close()
        open = { type: event.type, seq: event.seq, text, lengths: [...lengths], step, attempt }
      } else if (open && event.type === forRecovery) {
        open.lengths.push(0)
        open.seq = event.seq
      } else {
        close()
        size += JSON.stringify(event.data).length
        merged.push(event)
      }
    },
    isFull: () => size >= stretchMax,
    take(): LoggedEvent[] {
      close()
      const taken = merged
      merged = []
      size = 0
      return taken
    },
  }
}

export type Compacted = { events: number; kept: number; bytes: number; keptBytes: number }
const bytesOf = (events: readonly LoggedEvent[]) => Buffer.byteLength(JSON.stringify(events))

/**
 * Rewrites the stream of an ended run, a bounded stretch at a time. May be repeated from any point.
 * Counts events, and bytes of their JSON, before and after.
 */
export async function compact(log: Eventlog, stream: string): Promise<Compacted> {
  const merger = createMerger()
  const counts: Compacted = { events: 0, kept: 0, bytes: 0, keptBytes: 0 }
  let from: number | undefined
  let at = 0
  const rewrite = async () => {
    const kept = merger.take()
    if (from === undefined || kept.length === 0) return
    counts.kept += kept.length
    counts.keptBytes += bytesOf(kept)
    await log.rewrite(stream, { from, through: kept.at(-1)!.seq }, kept)
    from = undefined
  }
  for (;;) {
    const page = await log.read(stream, { after: at, limit: pageEvents })
    if (page.length === 0) break
    counts.events += page.length
    counts.bytes += bytesOf(page)
    for (const event of page) {
      from ??= event.seq - spanOf(event) + 1
      merger.add(event)
      if (merger.isFull()) await rewrite()
    }
    at = page.at(-1)!.seq
  }
  await rewrite()
  return counts
}
