// Copies a whole installation from some engines into others. The target is marked from the first
// write until both sides were compared, so that half a copy is never used.
import { fault } from '#kernel'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { SearchEngine } from '#ports/search.ts'
import { CopyMark, type StorageEngine } from '#ports/storage.ts'
import { copyBlobs, digestBlobs, hasBlobs } from './blobs.ts'
import {
  collectionsOf,
  copyDocuments,
  digestDocuments,
  fingerprintOf,
  occupied,
} from './documents.ts'
import { createProgress, type Digest, type Progress } from './progress.ts'
import { copySearch, digestSearch, hasPassages } from './search.ts'
import { copyStreams, digestStreams, hasStreams } from './streams.ts'

/** Engines that are absent are not copied. */
export type Side = {
  readonly storage: StorageEngine
  readonly eventlog?: EventlogEngine
  readonly blobs?: BlobsEngine
  readonly search?: SearchEngine
}
export type Compared = {
  readonly what: string
  readonly name: string
  readonly source: number
  readonly target: number
  readonly same: boolean
  readonly source_sha256: string
  readonly target_sha256: string
}
export type Copied = {
  readonly ok: boolean
  /** Where it is not. */
  readonly why?: string
  readonly resumed: boolean
  readonly compared: readonly Compared[]
}

const mark = 'copy'
const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })

async function markOf(storage: StorageEngine) {
  if (!(await storage.collections()).some(({ name }) => name === CopyMark.name)) return undefined
  await storage.define(CopyMark)
  return storage.get(CopyMark, mark)
}

async function heldBy({ storage, eventlog, blobs, search }: Side): Promise<string | undefined> {
  const held = await occupied(storage)
  if (held !== undefined) return `documents of ${held}`
  if (eventlog && (await hasStreams(eventlog))) return 'event streams'
  if (blobs && (await hasBlobs(blobs))) return 'blobs'
  return search && (await hasPassages(search)) ? 'collections of passages' : undefined
}

/**
 * True where the target is a copy that was begun from this source; INVALID_FIELD where it is
 * anything else but empty.
 */
async function begin(from: Side, to: Side, described: string): Promise<boolean> {
  if ((await collectionsOf(from.storage)).length === 0)
    throw refuse('from', 'holds no installation')
  if (await markOf(from.storage)) throw refuse('from', 'is itself an unfinished copy')
  const source = await fingerprintOf(from.storage)
  const begun = await markOf(to.storage)
  if (begun && begun.source !== source)
    throw refuse(
      'to',
      `is an unfinished copy of something else: ${begun.from}, or as that was before it ` +
        'changed. Empty it first',
    )
  if (begun) return true
  const what = await heldBy(to)
  if (what !== undefined) throw refuse('to', `is not empty: it holds ${what}`)
  await to.storage.define(CopyMark)
  await to.storage.insert(CopyMark, { id: mark, from: described, source })
  // Other engines are written to only when the mark cannot be lost.
  await to.storage.durable()
  return false
}

async function digestsOf(
  { storage, eventlog, blobs, search }: Side,
  progress: Progress,
): Promise<Digest[]> {
  return [
    ...(await digestDocuments(storage, progress)),
    ...(eventlog ? await digestStreams(eventlog, progress) : []),
    ...(blobs ? await digestBlobs(blobs, progress) : []),
    ...(search ? await digestSearch(search, progress) : []),
  ]
}

function compare(source: readonly Digest[], target: readonly Digest[]): Compared[] {
  const key = ({ what, name }: Digest) => `${what} ${name}`
  const [ours, theirs] = [source, target].map(
    list => new Map(list.map(one => [key(one), one])),
  ) as [Map<string, Digest>, Map<string, Digest>]
  return [...new Set([...ours.keys(), ...theirs.keys()])].map(at => {
    const [one, other] = [ours.get(at), theirs.get(at)]
    const { what, name } = (one ?? other)!
    return {
      what,
      name,
      source: one?.count ?? 0,
      target: other?.count ?? 0,
      same: one?.sha256 === other?.sha256,
      source_sha256: one?.sha256 ?? '',
      target_sha256: other?.sha256 ?? '',
    }
  })
}

/**
 * `described`: the source in words, without secrets. Nothing else may write on either side
 * meanwhile; whatever did is found by the comparison.
 */
export async function copyAll({
  from,
  to,
  described,
  clock,
  tell,
}: {
  from: Side
  to: Side
  described: string
  clock: Parameters<typeof createProgress>[0]
  tell: (line: string) => void
}): Promise<Copied> {
  const resumed = await begin(from, to, described)
  const progress = createProgress(clock, tell)
  if (resumed) tell('going on with a copy that was begun')
  await copyDocuments(from.storage, to.storage, progress)
  if (from.eventlog && to.eventlog) await copyStreams(from.eventlog, to.eventlog, progress)
  if (from.blobs && to.blobs) await copyBlobs(from.blobs, to.blobs, progress)
  if (from.search && to.search) await copySearch(from.search, to.search, progress)
  const verifying = createProgress(clock, tell)
  const source = await digestsOf(from, verifying)
  const target = await digestsOf(to, verifying)
  const compared = compare(source, target)
  const differing = compared
    .filter(({ same }) => !same)
    .map(({ what, name }) => (name ? `${what} of ${name}` : what))
  verifying.say('read both sides again')
  if (differing.length > 0)
    return {
      ok: false,
      why:
        `Source and target differ: ${differing.join(', ')}. Something wrote to one of them ` +
        'meanwhile, or changed the target; empty the target and begin anew.',
      resumed,
      compared,
    }
  await to.storage.remove(CopyMark, mark)
  await to.storage.durable()
  return { ok: true, resumed, compared }
}
