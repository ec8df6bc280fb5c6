// Copies every stream of an event log with its seqs, trimmed and rewritten ones too. The end of the
// target's stream says where an interrupted copy goes on.
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import { canonical, inPages, several, sha256, type Digest, type Progress } from './progress.ts'

/** Events of each of the streams that are read at once, in memory at a time. */
const page = 200
const atOnce = 8
/** What an event's seq and the commas take beside it, at most. */
const besideBytes = 24

async function* eventsOf(
  log: EventlogEngine,
  stream: string,
  behind: number,
): AsyncGenerator<readonly LoggedEvent[]> {
  for (let after = behind; ; ) {
    const found = await log.read(stream, { after, limit: page })
    if (found.length === 0) return
    yield found
    after = found.at(-1)!.seq
  }
}

/**
 * In parts of which each goes in one append. An event that is alone in its part has room, as it had
 * when it was appended.
 */
function* parts(
  events: readonly LoggedEvent[],
  bytesMax: number,
): Generator<readonly LoggedEvent[]> {
  let part: LoggedEvent[] = []
  let bytes = besideBytes
  for (const event of events) {
    const size = Buffer.byteLength(JSON.stringify(event)) + besideBytes
    if (part.length > 0 && bytes + size > bytesMax) {
      yield part
      part = []
      bytes = besideBytes
    }
    part.push(event)
    bytes += size
  }
  if (part.length > 0) yield part
}

async function copyStream(
  from: EventlogEngine,
  to: EventlogEngine,
  stream: string,
  progress: Progress,
): Promise<void> {
  const [source, target] = await Promise.all([from.bounds(stream), to.bounds(stream)])
  progress.add('streams', { streams: 1 })
  let at = target.last
  if (at === 0) {
    at = source.first - 1
    if (at > 0) await to.restore(stream, at, [])
  }
  for await (const events of eventsOf(from, stream, at)) {
    for (const part of parts(events, to.limits.appendBytesMax)) {
      await to.restore(stream, at, part)
      at = part.at(-1)!.seq
    }
    progress.add('streams', { events: events.length })
  }
}

export const hasStreams = async (log: EventlogEngine): Promise<boolean> =>
  (await log.streams({ limit: 1 })).length > 0

export async function copyStreams(
  from: EventlogEngine,
  to: EventlogEngine,
  progress: Progress,
): Promise<void> {
  for await (const found of inPages(options => from.streams(options)))
    await several(found, atOnce, stream => copyStream(from, to, stream, progress))
  await to.durable()
  progress.say('copied the event streams')
}

/** Bounds, seqs and events of each stream, then all streams in one. */
export async function digestStreams(log: EventlogEngine, progress: Progress): Promise<Digest[]> {
  const all = sha256()
  let count = 0
  const digest = async (stream: string) => {
    const hash = sha256().update(canonical([stream, await log.bounds(stream)]))
    let events = 0
    for await (const found of eventsOf(log, stream, 0)) {
      for (const event of found) hash.update('\n').update(canonical(event))
      events += found.length
      progress.add('verifying the streams', { events: found.length })
    }
    progress.add('verifying the streams', { streams: 1 })
    return { events, sha256: hash.digest() }
  }
  for await (const found of inPages(options => log.streams(options)))
    for (const one of await several(found, atOnce, digest)) {
      all.update(one.sha256)
      count += one.events
    }
  return [{ what: 'events', name: '', count, sha256: all.digest('hex') }]
}
