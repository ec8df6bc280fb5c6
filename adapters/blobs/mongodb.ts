// Blobs in MongoDB's GridFS (https://www.mongodb.com/docs/manual/core/gridfs/). Chunks are written
// first, and last the file's document, whose id is organisation and hash. Of two uploads of one
// content, the second finds that id taken.
import { createHash } from 'node:crypto'
import { Binary, MongoServerError, ObjectId } from 'mongodb'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Blob, Blobs, BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import { abortable } from '../_shared/abortable.ts'
import { checkedOrganisation, checkedRange, isHash } from '../_shared/blob-names.ts'
import { closableWork } from '../_shared/closable.ts'
import {
  connect,
  orFault,
  toFault,
  urlOptions,
  type Connection,
} from '../_shared/mongodb/database.ts'

type File = { _id: ObjectId; filename: string; length: number; chunkSize: number; uploadDate: Date }
type Chunk = { _id: ObjectId; files_id: ObjectId; n: number; data: Binary }
/**
 * Notes an upload whose chunks belong to no file. `at`: when they last grew, by the server's clock.
 */
type Upload = { _id: ObjectId; at: Date }

const serviceName = 'The blob store'
const bucketName = 'blobs'
/** GridFS's own size of a chunk, and so many go in one message: what a put holds in memory. */
const chunkBytes = 255 * 1024
const chunksTogether = 8
/** What has not grown for so long belongs to a process that is gone. */
const staleMs = 86_400_000
const swept = 100
const duplicate = 11_000
/** https://www.mongodb.com/docs/manual/reference/error-codes/: OutOfDiskSpace. */
const outOfDiskSpace = 14_031

const failure = (error: unknown): unknown =>
  error instanceof MongoServerError && error.code === outOfDiskSpace
    ? fault('STORAGE_FULL', {}, { cause: error })
    : toFault(error)

/**
 * The bytes of `content` in chunks of one size, several at a time; only the last may be shorter.
 * What it yields is its own.
 */
async function* cut(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  let together: Uint8Array[] = []
  let chunk = Buffer.alloc(chunkBytes)
  let filled = 0
  for await (const part of content) {
    for (let at = 0; at < part.length; ) {
      const taken = Math.min(part.length - at, chunkBytes - filled)
      chunk.set(part.subarray(at, at + taken), filled)
      at += taken
      filled += taken
      if (filled < chunkBytes) continue
      together.push(chunk)
      chunk = Buffer.alloc(chunkBytes)
      filled = 0
      if (together.length < chunksTogether) continue
      yield together
      together = []
    }
  }
  if (filled > 0) together.push(chunk.subarray(0, filled))
  if (together.length > 0) yield together
}

export async function mongoBlobs({
  connection: { db, ping, close },
  clock,
  log,
}: {
  connection: Connection
  clock: Clock
  log: Log
}): Promise<BlobsEngine> {
  const files = db.collection<File>(`${bucketName}.files`)
  const chunks = db.collection<Chunk>(`${bucketName}.chunks`)
  const uploads = db.collection<Upload>(`${bucketName}.uploads`)
  await orFault(
    Promise.all([
      files.createIndexes([{ name: 'address', key: { filename: 1 }, unique: true }]),
      chunks.createIndexes([{ name: 'files_id_1_n_1', key: { files_id: 1, n: 1 }, unique: true }]),
    ]),
  )
  const { check, track, signal: closing, close: closeGate } = closableWork(serviceName)
  let sweptAt = clock.monotonic()

  /**
   * Written before any chunk, so that a sweep finds what a crash leaves. True while the note
   * exists.
   */
  const note = async (id: ObjectId, upsert: boolean): Promise<boolean> =>
    (await uploads.updateOne({ _id: id }, { $currentDate: { at: true } }, { upsert }))
      .matchedCount === 1
  const drop = async (id: ObjectId): Promise<void> => {
    await chunks.deleteMany({ files_id: id })
    await uploads.deleteOne({ _id: id })
  }
  /**
   * Removes the note first. So only one of several sweeps goes on, and an upload that still writes
   * sees that its note is gone.
   */
  async function sweep(): Promise<void> {
    const { localTime } = await db.command({ hello: 1 })
    for (const upload of await uploads
      .find({ at: { $lt: new Date((localTime as Date).getTime() - staleMs) } })
      .limit(swept)
      .toArray()) {
      const { deletedCount } = await uploads.deleteOne(upload)
      // A file with a note is complete; only its note was left.
      if (
        deletedCount === 1 &&
        !(await files.findOne({ _id: upload._id }, { projection: { _id: 1 } }))
      )
        await chunks.deleteMany({ files_id: upload._id })
    }
  }
  const sweepOften = (): void => {
    if (clock.monotonic() - sweptAt < staleMs) return
    sweptAt = clock.monotonic()
    void track(sweep()).catch((error: unknown) =>
      log('warn', 'blobs.sweep_failed', { error: (toFault(error) as Error).message }),
    )
  }

  async function write(
    filename: (hash: string) => string,
    content: AsyncIterable<Uint8Array>,
    bytesMax: number,
  ): Promise<Blob> {
    const _id = new ObjectId()
    const digest = createHash('sha256')
    let bytes = 0
    let n = 0
    async function* measured(): AsyncGenerator<Uint8Array> {
      for await (const part of content) {
        bytes += part.length
        if (bytes > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
        digest.update(part)
        yield part
      }
    }
    const lost = () =>
      fault('UNAVAILABLE', {
        what: serviceName,
        why: 'the upload stood still for a day and was swept',
      })
    let blob: Blob | undefined
    try {
      for await (const together of cut(measured())) {
        if (!(await note(_id, n === 0)) && n > 0) throw lost()
        const written = together.map(data => ({
          _id: new ObjectId(),
          files_id: _id,
          n: n++,
          data: new Binary(data),
        }))
        await chunks.insertMany(written)
      }
      blob = { hash: digest.digest('hex'), bytes }
      if (await files.findOne({ filename: filename(blob.hash) }, { projection: { _id: 1 } }))
        await drop(_id)
      else {
        await files.insertOne({
          _id,
          filename: filename(blob.hash),
          length: bytes,
          chunkSize: chunkBytes,
          uploadDate: new Date(clock.now()),
        })
        if (n > 0 && (await uploads.deleteOne({ _id })).deletedCount === 0) throw lost()
      }
      return blob
    } catch (error) {
      // The file first, for an insertion that seems to have failed may have been made. What cannot
      // be dropped now is swept later: its note stands.
      await files
        .deleteOne({ _id })
        .then(() => drop(_id))
        .catch((reason: unknown) =>
          log('warn', 'blobs.drop_failed', { error: (toFault(reason) as Error).message }),
        )
      if (blob && error instanceof MongoServerError && error.code === duplicate) return blob
      throw failure(error)
    }
  }

  const within = (orgId: string): Blobs => {
    check()
    const home = `${checkedOrganisation(orgId)}/`
    return {
      async put(content, { bytesMax = Infinity, signal } = {}) {
        check()
        sweepOften()
        return track(write(hash => home + hash, abortable(content, [signal, closing]), bytesMax))
      },
      async *get(hash, { signal, ...range } = {}) {
        check()
        signal?.throwIfAborted()
        const { start, end } = checkedRange(range)
        const file = isHash(hash) ? await orFault(files.findOne({ filename: home + hash })) : null
        if (!file) throw fault('NOT_FOUND', { what: 'blob' })
        const stop = Math.min(end, file.length)
        if (start >= stop) return
        // A few at a time: the driver would ask for 16 MiB together.
        const cursor = chunks.find(
          {
            files_id: file._id,
            n: { $gte: Math.floor(start / file.chunkSize), $lt: Math.ceil(stop / file.chunkSize) },
          },
          { sort: { n: 1 }, batchSize: chunksTogether },
        )
        let at = start
        try {
          for await (const { n, data } of abortable(cursor, [signal, closing])) {
            const first = n * file.chunkSize
            const bytes = data.buffer.subarray(0, data.position)
            const part = bytes.subarray(at - first, Math.min(stop - first, bytes.length))
            if (first > at || part.length === 0) break
            at += part.length
            yield part
          }
        } catch (error) {
          throw toFault(error)
        } finally {
          await cursor.close()
        }
        if (at === stop) return
        const isThere = await orFault(files.findOne({ _id: file._id }, { projection: { _id: 1 } }))
        // The blob was removed while it was read.
        throw isThere
          ? fault('UNAVAILABLE', { what: serviceName, why: 'a part of this blob is missing' })
          : fault('NOT_FOUND', { what: 'blob' })
      },
      async stat(hash) {
        check()
        const file = isHash(hash)
          ? await orFault(files.findOne({ filename: home + hash }, { projection: { length: 1 } }))
          : null
        return file ? { hash, bytes: file.length } : undefined
      },
      async remove(hash) {
        check()
        const file = isHash(hash)
          ? await orFault(files.findOne({ filename: home + hash }, { projection: { _id: 1 } }))
          : null
        if (!file) return false
        await orFault(note(file._id, true))
        const { deletedCount } = await orFault(files.deleteOne({ _id: file._id }))
        await orFault(drop(file._id))
        return deletedCount === 1
      },
    }
  }
  await orFault(sweep())
  return {
    within,
    async addresses({ after = '', limit }) {
      check()
      return (
        await orFault(
          files
            .find(
              { filename: { $gt: after } },
              { projection: { filename: 1 }, sort: { filename: 1 }, limit },
            )
            .toArray(),
        )
      ).map(({ filename }) => filename)
    },
    async ping() {
      check()
      await ping()
    },
    close: () => closeGate(close),
  }
}

export default defineAdapter<BlobsEngine>({
  port: 'blobs',
  scheme: 'mongodb',
  options: urlOptions,
  open: async ({ url, clock, log }) => {
    const connection = await connect(url)
    try {
      return await mongoBlobs({ connection, clock, log })
    } catch (error) {
      await connection.close()
      throw error
    }
  },
})
