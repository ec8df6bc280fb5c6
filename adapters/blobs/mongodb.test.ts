// The kit against the server that MONGODB_URL names, and what GridFS is left with after each.
import { once } from 'node:events'
import { GridFSBucket, ObjectId } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import { blobsKit, chunks, whole } from '../../test/conformance/blobs.ts'
import { putFromTwo } from '../../test/support/children/blobs-two.ts'
import { retainedBuffers } from '../../test/support/retained-buffers.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { opening } from '../../test/conformance/opening.ts'
import { startProxy } from '../../test/support/databases/proxy.ts'
import { withPlace } from '../../test/conformance/runner.ts'
import { scopedBlobs } from '../../test/conformance/scoped.ts'
import { connect } from '../_shared/mongodb/database.ts'
import { systemClock } from '../clock/system.ts'
import adapter, { mongoBlobs } from './mongodb.ts'

const clock = systemClock()
const ownOrg = '01890000-0000-7000-8000-00000000000a'
const dayMs = 86_400_000

/** A database of its own. `leftovers`: chunks of no file, and notes of uploads. */
async function place(face = (engine: BlobsEngine) => engine) {
  const { url, connect: connectDatabase, clean } = freshDatabase()
  const { db, close } = await connectDatabase()
  const files = db.collection('blobs.files')
  const pieces = db.collection('blobs.chunks')
  const uploads = db.collection('blobs.uploads')
  return {
    url,
    files,
    pieces,
    uploads,
    open: async () =>
      face(await mongoBlobs({ connection: await connectDatabase(), clock, log: () => undefined })),
    async leftovers() {
      const known = new Set((await files.find().toArray()).map(({ _id }) => String(_id)))
      return [
        ...(await pieces.find({}, { projection: { files_id: 1 } }).toArray()).filter(
          piece => !known.has(String(piece['files_id'])),
        ),
        ...(await uploads.find().toArray()),
      ].map(({ _id }) => String(_id))
    },
    async clean() {
      await close()
      await clean()
    },
  }
}
const on = (
  title: string,
  run: (engine: BlobsEngine, at: Awaited<ReturnType<typeof place>>) => Promise<void>,
) =>
  test(
    `mongodb: ${title}`,
    withPlace(() => place(), run),
  )
async function* pattern(bytes: number): AsyncGenerator<Uint8Array> {
  const part = Buffer.alloc(65_536, 'abc')
  for (let at = 0; at < bytes; at += part.length)
    yield part.subarray(0, Math.min(part.length, bytes - at))
}

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  for (const [name, face] of [
    ['mongodb', undefined],
    ['mongodb, of a tenant', scopedBlobs],
  ] as const)
    blobsKit(test, name, { place: () => place(face), survives: true })

  on(
    'two processes put the same contents at once: each is stored once, and nothing else is left',
    async (engine, { url, files, leftovers }) => {
      const [one, other] = await putFromTwo({
        url: url.href,
        orgId: ownOrg,
        bytes: 600_000,
        times: 12,
      })
      assert.equal(one, other)
      assert.equal(
        [new Set(one).size, await files.countDocuments(), await leftovers()],
        [12, 12, []],
      )
      assert.is(
        (await whole(engine.within(ownOrg), one![3]!)).equals(Buffer.alloc(600_000, 4)),
        true,
      )
    },
  )
  on(
    '40 MiB go through in pieces, in and out, and no more than some of them are held',
    async engine => {
      const blobs = engine.within(ownOrg)
      const bytes = 40 * 1_048_576
      const { watched, most } = retainedBuffers()
      const { hash } = await blobs.put(watched(pattern(bytes)))
      let read = 0
      for await (const part of watched(blobs.get(hash))) read += part.length
      assert.is(read, bytes)
      assert.ok(most() < 24 * 1_048_576, `${Math.round(most() / 1_048_576)} MiB were held`)
    },
  )
  on(
    "what a process that is gone left is swept after a day of the server's clock; what " +
      'another writes now is spared',
    async (engine, { open, files, pieces, uploads }) => {
      const { hash } = await engine.within(ownOrg).put(chunks(Buffer.alloc(300_000, 1)))
      const finished = (await files.findOne())!
      const gate = Promise.withResolvers<void>()
      const going = engine.within(ownOrg).put(
        (async function* () {
          yield Buffer.alloc(3_000_000, 2)
          await gate.promise
          yield Buffer.alloc(10, 2)
        })(),
      )
      while ((await pieces.countDocuments()) < 3) await new Promise(done => setTimeout(done, 5))
      const [gone, recent] = [new ObjectId(), new ObjectId()]
      const old = new Date(Date.now() - 2 * dayMs)
      await pieces.insertMany(
        [gone, recent].map(id => ({ files_id: id, n: 0, data: Buffer.alloc(10) })),
      )
      // The note of a whole file was left by a crash just after its end.
      await uploads.insertMany([
        { _id: gone, at: old },
        { _id: recent, at: new Date(Date.now() - dayMs / 2) },
        { _id: finished._id, at: old },
      ])
      await (await open()).close()
      assert.equal(
        [
          await pieces.countDocuments({ files_id: gone }),
          await pieces.countDocuments({ files_id: recent }),
          await uploads.countDocuments(),
        ],
        [0, 1, 2],
      )
      gate.resolve()
      const { hash: second } = await going
      assert.equal(
        [
          (await whole(engine.within(ownOrg), hash)).length,
          (await whole(engine.within(ownOrg), second)).length,
        ],
        [300_000, 3_000_010],
      )
    },
  )
  on(
    "what others put by the driver's own bucket is read, and what lies here is read by it; " +
      'a blob with a hole says so',
    async (engine, { url, pieces }) => {
      const bytes = Buffer.alloc(700_000, 'xyz')
      const { hash } = await engine.within(ownOrg).put(chunks(bytes))
      const { db, close } = await connect(url)
      const bucket = new GridFSBucket(db, { bucketName: 'blobs' })
      assert.ok(
        Buffer.concat(
          await Array.fromAsync(bucket.openDownloadStreamByName(`${ownOrg}/${hash}`)),
        ).equals(bytes),
      )
      await once(
        bucket.openUploadStream(`${ownOrg}/${'0'.repeat(64)}`, { chunkSizeBytes: 1000 }).end(bytes),
        'finish',
      )
      assert.ok(
        (await whole(engine.within(ownOrg), '0'.repeat(64), { start: 1500, end: 3500 })).equals(
          bytes.subarray(1500, 3500),
        ),
      )
      await pieces.deleteOne({ n: 1, data: { $exists: true } })
      assert.ok(
        hasCode(
          await whole(engine.within(ownOrg), hash).catch((error: unknown) => error),
          'UNAVAILABLE',
        ),
      )
      await close()
    },
  )
  on(
    'while the server is away a sentence says so, and the same engine works again when it is back',
    async (direct, { url, uploads }) => {
      const proxy = await startProxy(() => [Number(url.port)], url.hostname)
      const through = new URL(url)
      const { hash } = await direct.within(ownOrg).put(chunks(Buffer.from('here')))
      through.port = String(proxy.port)
      for (const [name, value] of Object.entries({
        directConnection: 'true',
        serverSelectionTimeoutMS: '300',
      }))
        through.searchParams.set(name, value)
      const engine = await adapter.open(opening(through.href, { clock }))
      const blobs = engine.within(ownOrg)
      await using ending = new AsyncDisposableStack()
      ending.defer(() => proxy.close())
      ending.defer(() => engine.close())
      const breaking = blobs.put(
        (async function* () {
          yield Buffer.alloc(3_000_000)
          proxy.refuse()
          yield Buffer.alloc(3_000_000)
        })(),
      )
      for (const call of [
        () => breaking,
        () => blobs.stat(hash),
        () => whole(blobs, hash),
        () => blobs.remove(hash),
        () => engine.ping(),
      ])
        assert.ok(hasCode(await call().catch((error: unknown) => error), 'UNAVAILABLE'))
      proxy.heal()
      assert.equal(
        [
          String(await whole(blobs, hash)),
          (await blobs.put(chunks(Buffer.from('other')))).bytes,
          await blobs.remove(hash),
        ],
        ['here', 5, true],
      )
      // What could not be dropped has its note: a sweep will find it.
      assert.is(await uploads.countDocuments(), 1)
    },
  )
  on(
    'an upload that was swept meanwhile fails and leaves no file that cannot be read',
    async (engine, { files, pieces, uploads }) => {
      const putting = engine.within(ownOrg).put(
        (async function* () {
          yield Buffer.alloc(3_000_000, 1)
          await uploads.deleteMany({})
          await pieces.deleteMany({})
          yield Buffer.alloc(10, 1)
        })(),
      )
      assert.ok(hasCode(await putting.catch((error: unknown) => error), 'UNAVAILABLE'))
      assert.equal([await files.countDocuments(), await pieces.countDocuments()], [0, 0])
    },
  )
}

test('mongodb: an error without a server shows neither user nor password', async () => {
  const error = await adapter
    .open(
      opening('mongodb://somebody:hidden-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200', {
        clock,
      }),
    )
    .then(
      () => undefined,
      (reason: Error) => reason,
    )
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(error.message, 'The database is not available: no server that takes writes answers.')
})

test.run()
