// Blobs as files: <root>/<organisation>/<first two digits>/<hash>. Each file is written elsewhere,
// and moved into place when it is complete and on disk.
import { createHash } from 'node:crypto'
import * as nodeFiles from 'node:fs/promises'
import { join } from 'node:path'
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Blob, Blobs, BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import { abortable } from '../_shared/abortable.ts'
import { checkedOrganisation, checkedRange, isAddress, isHash } from '../_shared/blob-names.ts'
import {
  isAbsent,
  isFull,
  makeFolder,
  sweepFolder,
  syncFolder,
  writeThenPlace,
  type Files,
} from '../_shared/atomic-file.ts'
import { closableWork, type ClosableWork } from '../_shared/closable.ts'
import { folderOf } from '../_shared/options.ts'

const serviceName = 'The blob store'
const readBytes = 65_536
/** Milliseconds after which an idle temporary file belongs to a dead process. */
const staleMs = 3_600_000

type Place = {
  readonly root: string
  readonly temporary: string
  readonly clock: Pick<Clock, 'id'>
  readonly files: Files
}

/** Counts and hashes the bytes, and stops at the limit. */
async function* measured(
  content: AsyncIterable<Uint8Array>,
  {
    bytesMax,
    hash,
    seen,
  }: { bytesMax: number; hash: { update(data: Uint8Array): unknown }; seen: { bytes: number } },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    seen.bytes += chunk.length
    if (seen.bytes > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
    hash.update(chunk)
    yield chunk
  }
}

const fileBlobsOf =
  ({ root, temporary, clock, files }: Place, { check, signal: closing, track }: ClosableWork) =>
  (orgId: string): Blobs => {
    check()
    const home = join(root, checkedOrganisation(orgId))
    const folderFor = (hash: string): string => join(home, hash.slice(0, 2))
    const pathOf = (hash: string): string => join(folderFor(hash), hash)

    const write = async (
      content: AsyncIterable<Uint8Array>,
      { bytesMax = Infinity, signal }: { bytesMax?: number; signal?: AbortSignal | undefined },
    ): Promise<Blob> => {
      const hash = createHash('sha256')
      const seen = { bytes: 0 }
      try {
        return await writeThenPlace(
          measured(abortable(content, [signal, closing]), { bytesMax, hash, seen }),
          {
            temporary: join(temporary, clock.id()),
            files,
            place: async () => {
              const blob = { hash: hash.digest('hex'), bytes: seen.bytes }
              await makeFolder(folderFor(blob.hash), { top: root, files })
              // The same content again replaces itself. That is faster than a check, and right when
              // somebody removes the blob meanwhile.
              return { path: pathOf(blob.hash), result: blob }
            },
          },
        )
      } catch (error) {
        throw isFull(error) ? fault('STORAGE_FULL', {}, { cause: error }) : error
      }
    }
    return {
      async put(content, { bytesMax, signal } = {}) {
        check()
        return track(write(content, { ...(bytesMax === undefined ? {} : { bytesMax }), signal }))
      },
      async *get(hash, { signal, ...range } = {}) {
        check()
        signal?.throwIfAborted()
        const { start, end } = checkedRange(range)
        if (!isHash(hash)) throw fault('NOT_FOUND', { what: 'blob' })
        const handle = await files.open(pathOf(hash), 'r').catch((error: unknown) => {
          throw isAbsent(error) ? fault('NOT_FOUND', { what: 'blob' }) : error
        })
        try {
          for (let at = start; at < end; ) {
            const { bytesRead, buffer } = await handle.read({
              buffer: Buffer.allocUnsafe(Math.min(readBytes, end - at)),
              position: at,
            })
            signal?.throwIfAborted()
            check()
            if (bytesRead === 0) return
            at += bytesRead
            yield buffer.subarray(0, bytesRead)
          }
        } finally {
          await handle.close()
        }
      },
      async stat(hash) {
        check()
        if (!isHash(hash)) return undefined
        return files.stat(pathOf(hash)).then(
          found => ({ hash, bytes: found.size }),
          (error: unknown) => {
            if (isAbsent(error)) return undefined
            throw error
          },
        )
      },
      async remove(hash) {
        check()
        if (!isHash(hash)) return false
        const removed = await files.unlink(pathOf(hash)).then(
          () => true,
          (error: unknown) => {
            if (isAbsent(error)) return false
            throw error
          },
        )
        if (removed) await syncFolder(folderFor(hash), files)
        return removed
      },
    }
  }

/**
 * Lists folder by folder in the order of `<organisation>/<hash>`. Hashes begin with their folder's
 * name, so only the order of organisations needs the slash.
 */
async function addressesIn(
  { root, files }: Place,
  after: string,
  limit: number,
): Promise<string[]> {
  const inside = (path: string): Promise<string[]> =>
    files.readdir(path).catch((error: unknown) => {
      if (isAbsent(error) || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return []
      throw error
    })
  const found: string[] = []
  for (const org of (await inside(root)).map(name => `${name}/`).sort()) {
    if (org < after.slice(0, after.indexOf('/') + 1)) continue
    for (const start of (await inside(join(root, org))).sort()) {
      if (`${org}${start}` < after.slice(0, org.length + start.length)) continue
      found.push(
        ...(await inside(join(root, org, start)))
          .sort()
          .map(hash => org + hash)
          .filter(address => isAddress(address) && address > after),
      )
      if (found.length >= limit) return found.slice(0, limit)
    }
  }
  return found
}

/** Opens, or makes, the folder `root`. `files` is node:fs/promises; a test hands in a full disk. */
export async function fileBlobs({
  root,
  clock,
  files = nodeFiles,
}: {
  root: string
  clock: Pick<Clock, 'id'>
  files?: Files
}): Promise<BlobsEngine> {
  // A dot cannot begin an organisation's name.
  const temporary = join(root, '.temporary')
  await makeFolder(temporary, { files })
  const probe = join(temporary, clock.id())
  const handle = await files.open(probe, 'wx', 0o600)
  const now = await handle
    .stat()
    .then(found => found.mtimeMs)
    .finally(() => handle.close())
  await files.rm(probe)
  await sweepFolder(temporary, { now, idleMs: staleMs, files })

  const gate = closableWork(serviceName)
  const { check } = gate
  return {
    within: fileBlobsOf({ root, temporary, clock, files }, gate),
    async addresses({ after = '', limit }) {
      check()
      return addressesIn({ root, temporary, clock, files }, after, limit)
    },
    async ping() {
      check()
      await files.stat(temporary).catch(() => {
        throw fault('UNAVAILABLE', { what: serviceName, why: 'its folder cannot be read' })
      })
    },
    close: () => gate.close(),
  }
}

export default defineAdapter<BlobsEngine>({
  port: 'blobs',
  scheme: 'file',
  open: async ({ url, dataDir, clock }) =>
    fileBlobs({ root: folderOf(url, { dataDir, name: 'blobs' }), clock }),
})
