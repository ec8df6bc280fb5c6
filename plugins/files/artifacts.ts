// Artifacts: what agents, and users by POST /artifacts, produce.
import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import type { StreamedBody } from '#contracts/contract.ts'
import {
  fileBytesMax,
  filenamePattern,
  mimePattern,
  type Artifact as ArtifactReply,
  type NewArtifact as OwnArtifact,
} from '#contracts/files.ts'
import { fault, hasCode, type Bytes } from '#kernel'
import type { Blob, ScopedBlobs } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import type { ArtifactsApi, NewArtifact, Scope, SessionOwner } from './api.ts'
import type { Keeper } from './blobs/blobs.ts'
import { Artifacts, type Artifact } from './collections.ts'
import { download } from './uploads/download.ts'
import type { Semaphore } from './blobs/semaphore.ts'
import { ownFile, requireSession } from './blobs/ownership.ts'
import type { Usage } from './blobs/usage.ts'

type Deps = {
  store: ScopedStorage
  blobs: ScopedBlobs
  clock: Clock
  sessionOwners: () => readonly SessionOwner[]
  keeper: Keeper
  line: Semaphore
  usage: Usage
}
type OwnText = StreamedBody<Omit<Static<typeof OwnArtifact>, 'content'>>
/** What is known of streamed content when it has ended. */
type Named = Pick<NewArtifact, 'filename' | 'mime' | 'sessionId'>

/** Characters, as the wire counts them. */
const nameMax = 255
/** Artifacts of one run that are listed with it. */
const ofRunMax = 200

/**
 * A UUID of version 8 (RFC 9562, section 5.8) from SHA-256: the same organisation, user and key
 * always make the same one.
 */
function idOf({ orgId, userId }: Scope, key: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([orgId, userId, key]))
    .digest()
  digest[6] = (digest[6]! & 0x0f) | 0x80
  digest[8] = (digest[8]! & 0x3f) | 0x80
  const hex = digest.toString('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join('-')
}

const replyOf = ({
  id,
  filename,
  mime,
  bytes,
  hash,
  sessionId,
  runId,
  createdAt,
}: Artifact): ArtifactReply => ({
  id,
  filename,
  mime,
  bytes,
  sha256: hash,
  session_id: sessionId ?? null,
  run_id: runId ?? null,
  created_at: new Date(createdAt).toISOString(),
})

/** Checks names that a plugin gives. The wire's names are checked by its contract. */
function requireNames({ filename, mime }: { filename: string; mime: string }): void {
  const check = (field: string, text: string, pattern: string) => {
    if (
      Array.from(text).length > nameMax ||
      !text.isWellFormed() ||
      !new RegExp(pattern, 'u').test(text)
    )
      throw fault('INVALID_FIELD', { field, why: 'is not one that a file may have' })
  }
  check('filename', filename, filenamePattern)
  check('mime', mime, mimePattern)
}

async function* streamOf(content: NewArtifact['content']): AsyncGenerator<Uint8Array> {
  if (content instanceof Uint8Array) yield content
  else yield* content
}

export function createArtifacts({ store, blobs, clock, sessionOwners, keeper, line, usage }: Deps) {
  /** Takes the id, or continues an unfinished try with the same content. */
  const claim = async (own: Store, artifact: Artifact): Promise<void> => {
    try {
      await own.insert(Artifacts, artifact)
    } catch (error) {
      if (!hasCode(error, 'DUPLICATE')) throw error
      const other = await own.get(Artifacts, artifact.id)
      if (other?.hash !== artifact.hash)
        throw fault(
          'CONFLICT',
          { why: 'other content is being stored under this key' },
          { cause: error },
        )
    }
  }
  const storeNew = async (
    scope: Scope,
    id: string,
    { runId, content, signal, isResult }: Omit<NewArtifact, 'key' | keyof Named>,
    named: () => Named,
  ): Promise<Artifact> => {
    if (!isResult) await usage.requireRoom(scope)
    const own = store.tenant(scope)
    const now = clock.now()
    const refer = (blob: Blob) => {
      const { sessionId, filename, mime } = named()
      return claim(own, {
        id,
        orgId: scope.orgId,
        userId: scope.userId,
        ...(sessionId ? { sessionId } : {}),
        ...(runId ? { runId } : {}),
        filename,
        mime,
        ...blob,
        storingSince: now,
        createdAt: now,
      })
    }
    const { hash } = await keeper.put(scope, streamOf(content), {
      bytesMax: fileBytesMax,
      signal,
      refer,
    })
    const stored = await own.update(Artifacts, id, { unset: ['storingSince'] }, { if: { hash } })
    if (stored) {
      await usage.add(scope, { files: 1, bytes: stored.bytes })
      return stored
    }
    await keeper.release(scope, [hash], async () => undefined)
    throw fault('NOT_FOUND', { what: 'session' })
  }
  /** Answers the existing artifact, or makes it. */
  const make = async (scope: Scope, artifact: NewArtifact): Promise<Artifact> => {
    requireNames(artifact)
    const id = idOf(scope, artifact.key)
    return (
      (await ownFile(store, Artifacts, scope, id)) ??
      (await storeNew(scope, id, artifact, () => artifact))
    )
  }
  const api: ArtifactsApi = {
    async create(scope, artifact) {
      const { id, bytes, filename } = await make(scope, artifact)
      return { id, bytes, filename }
    },
    async find(scope, key) {
      const found = await ownFile(store, Artifacts, scope, idOf(scope, key))
      return found && { id: found.id, bytes: found.bytes, filename: found.filename }
    },
    async listOfRun(scope, runId) {
      const where = { runId, userId: scope.userId, storingSince: { exists: false } }
      const { items } = await store
        .tenant(scope)
        .find(Artifacts, { where, orderBy: ['createdAt', 'asc'], limit: ofRunMax })
      return items.map(replyOf)
    },
    async list(scope, sessionId, { limit = 50, cursor }) {
      const where = { sessionId, userId: scope.userId, storingSince: { exists: false } }
      const { items, next } = await store.tenant(scope).find(Artifacts, {
        where,
        orderBy: ['createdAt', 'asc'],
        limit,
        ...(cursor === undefined ? {} : { after: cursor }),
      })
      return { items: items.map(replyOf), ...(next === undefined ? {} : { next_cursor: next }) }
    },
  }
  return {
    ...api,
    async createOwn(
      scope: Scope,
      body: OwnText,
      address: string,
      signal: AbortSignal,
    ): Promise<ArtifactReply> {
      const named = (): Named => {
        const { filename, mime, session_id: sessionId } = body.fields()
        return { filename, mime, ...(sessionId ? { sessionId } : {}) }
      }
      async function* content() {
        yield* body.content
        await requireSession(sessionOwners(), scope, named().sessionId)
      }
      return line.run({ user: scope.userId, address }, signal, async () =>
        replyOf(
          await storeNew(scope, idOf(scope, clock.id()), { content: content(), signal }, named),
        ),
      )
    },
    async download(scope: Scope, id: string, signal: AbortSignal): Promise<Bytes> {
      const artifact = await ownFile(store, Artifacts, scope, id)
      if (!artifact) throw fault('NOT_FOUND', { what: 'artifact' })
      return download(blobs, scope, artifact, signal)
    },
    discard: (scope: { orgId: string }, { id, hash }: Artifact) =>
      keeper.release(scope, [hash], () =>
        store.tenant(scope).remove(Artifacts, id, { if: { storingSince: { exists: true } } }),
      ),
  }
}
export type ArtifactService = ReturnType<typeof createArtifacts>
