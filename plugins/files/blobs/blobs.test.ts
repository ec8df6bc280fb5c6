// Content goes with the last document that refers to it, and no document is without its content.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Queue } from '#ports/queue.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { ScopedStorage, StorageEngine } from '#ports/storage.ts'
import type { Clock } from '#ports/clock.ts'
import { scopeBlobs } from '../../../kernel/scoped-ports/face.ts'
import { scopeStorage } from '../../../kernel/scoped-ports/storage.ts'
import { sha256, startFiles, until } from '../../../test/support/files-kit.ts'
import { createKeeper } from './blobs.ts'
import { Artifacts, Removals, Uploads } from '../collections.ts'
import plugin from '../plugin.ts'

const server = await startFiles()
const ann = await server.account()
const scope = { orgId: ann.org_id, userId: ann.user_id }
const other = { orgId: ann.org_id, userId: crypto.randomUUID() }
const storage = server.engine<StorageEngine>('storage')
const engine = server.engine<BlobsEngine>('blobs')
const queue = server.engine<Queue>('queue')
const clock = server.engine<Clock>('clock')
const store: ScopedStorage = scopeStorage(storage, plugin)
const blobs = scopeBlobs(engine)
const keeper = createKeeper({ store, blobs, clock })
const has = async (content: string | Uint8Array) =>
  (await engine.within(ann.org_id).stat(sha256(content))) !== undefined
const artifact = (key: string, content: string, sessionId: string) =>
  server.artifacts().create(scope, {
    key,
    sessionId,
    filename: 'a.md',
    mime: 'text/markdown',
    content: Buffer.from(content),
  })
async function* parts(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

test('a session takes its files along, and content with the last that refers to it', async () => {
  const first = server.sessionOf(ann)
  const second = server.sessionOf(ann)
  const long = 'long text '.repeat(5000)
  await server.upload(ann, 'shared', { session_id: first })
  await server.upload(ann, 'alone', { session_id: first })
  await server.upload(ann, Buffer.from(long, 'utf16le'), {
    session_id: first,
    mime: 'text/plain; charset=utf-16le',
  })
  await artifact('shared', 'shared', second)
  for (let i = 0; i < 60; i++) await artifact(`many ${i}`, `many ${i}`, first)
  assert.ok(await has(long), 'the text of a long file is content of its own')
  await server.uploads().removeOfSession(other, first)
  assert.ok(await has('alone'), 'a colleague removes nothing')
  await server.uploads().removeOfSession(scope, first)
  assert.equal(
    [
      await has('shared'),
      await has('alone'),
      await has(long),
      await has(Buffer.from(long, 'utf16le')),
      await has('many 0'),
      await has('many 59'),
    ],
    [true, false, false, false, false, false],
  )
  assert.is(
    (await storage.count(Uploads, { sessionId: first })) +
      (await storage.count(Artifacts, { sessionId: first })),
    0,
  )
  assert.is((await server.artifacts().list(scope, second, {})).items.length, 1)
  await server.uploads().removeOfSession(scope, second)
  await server.uploads().removeOfSession(scope, second)
  assert.not.ok(await has('shared'))
  assert.is(await storage.count(Removals), 0)
})

test('content that is the text of another file stays with that file', async () => {
  const first = server.sessionOf(ann)
  const second = server.sessionOf(ann)
  const long = 'the text of another file '.repeat(1000)
  const uploaded = await server.upload(ann, Buffer.from(long, 'utf16le'), {
    session_id: first,
    mime: 'text/plain; charset=utf-16le',
  })
  await artifact('the same as that text', long, second)
  await server.uploads().removeOfSession(scope, second)
  assert.is((await server.read(ann, uploaded))['text'], long)
})

test('the same key is the same artifact, whatever comes with it', async () => {
  const session = server.sessionOf(ann)
  const made = await artifact('key', 'first', session)
  assert.match(made.id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(await artifact('key', 'second', session), made)
  assert.not.ok(await has('second'))
  assert.equal(await server.artifacts().find(scope, 'key'), made)
  assert.is(await server.artifacts().find(scope, 'no such key'), undefined)
  assert.is(await server.artifacts().find(other, 'key'), undefined)
  assert.is.not(
    (
      await server
        .artifacts()
        .create(other, { key: 'key', filename: 'a', mime: 'a/b', content: parts('third') })
    ).id,
    made.id,
    'another user, another artifact',
  )
  const both = await Promise.all([
    artifact('at once', 'same', session),
    artifact('at once', 'same', session),
  ])
  assert.equal(both[0], both[1])
  for (const wrong of [
    { filename: 'a/b' },
    { filename: '' },
    { mime: 'none' },
    { filename: 'x'.repeat(256) },
  ])
    await server
      .artifacts()
      .create(scope, { key: 'wrong', filename: 'a', mime: 'a/b', content: parts('x'), ...wrong })
      .then(
        () => assert.unreachable(),
        (error: Error) => assert.match(error.message, Object.keys(wrong)[0]!),
      )
})

test('a list goes page by page, the oldest first', async () => {
  const session = server.sessionOf(ann)
  for (const name of ['a', 'b', 'c']) await artifact(`page ${name}`, name, session)
  const first = await server.artifacts().list(scope, session, { limit: 2 })
  const second = await server
    .artifacts()
    .list(scope, session, { limit: 2, cursor: first.next_cursor! })
  assert.equal([first.items.length, second.items.length, second.next_cursor], [2, 1, undefined])
  assert.equal(
    [...first.items, ...second.items].map(item => item.sha256).sort(),
    ['a', 'b', 'c'].map(sha256).sort(),
  )
  assert.equal((await server.artifacts().list(other, session, {})).items, [])
})

test('a document is written before its content; a failed one leaves no content', async () => {
  let seen: boolean | undefined
  await keeper.put(scope, parts('in ', 'order'), {
    bytesMax: 100,
    refer: async ({ hash, bytes }) => {
      assert.equal([hash, bytes], [sha256('in order'), 8])
      seen = await has('in order')
    },
  })
  assert.equal([seen, await has('in order')], [false, true])
  await keeper
    .put(scope, parts('refused'), {
      bytesMax: 100,
      refer: async () => {
        throw new Error('no')
      },
    })
    .then(
      () => assert.unreachable(),
      (error: Error) => assert.is(error.message, 'no'),
    )
  assert.not.ok(await has('refused'))
  let referred = false
  await keeper
    .put(scope, parts('far ', 'too ', 'long'), {
      bytesMax: 8,
      refer: async () => {
        referred = true
      },
    })
    .then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /larger than 8 bytes/),
    )
  assert.equal([referred, await has('far too long')], [false, false])
})

test('storing waits for a removal of the same content; a removal spares new content', async () => {
  const hash = sha256('contested')
  const own = store.tenant(scope)
  const removal = { id: clock.id(), orgId: scope.orgId, hash, createdAt: clock.now() }
  const document = {
    id: clock.id(),
    orgId: scope.orgId,
    userId: scope.userId,
    filename: 'a',
    mime: 'a/b',
    hash,
    bytes: 9,
    createdAt: 0,
  }
  await own.insert(Removals, removal)
  let referred = false
  let placed = false
  const putting = keeper
    .put(scope, parts('contested'), {
      bytesMax: 100,
      refer: async () => {
        await own.insert(Artifacts, document)
        referred = true
      },
    })
    .then(() => {
      placed = true
    })
  await until(() => referred)
  assert.not.ok(placed, 'it waits while the removal is there')
  await keeper.finish(scope, removal)
  await putting
  assert.ok(await has('contested'))
  await keeper.release(scope, [hash], async () => undefined)
  assert.ok(await has('contested'), 'somebody still refers to it')
  await keeper.release(scope, [hash], () => own.remove(Artifacts, document.id))
  assert.not.ok(await has('contested'))
})

test('the sweep finishes what a crash cut short, and leaves alone what is young', async () => {
  const long = Date.now() - 3_600_000
  const uploaded = await server.upload(ann, 'never answered')
  const id = (uploaded.body as { upload_id: string }).upload_id
  const made = await artifact('cut short', 'never told', server.sessionOf(ann))
  const young = await artifact('young', 'just begun', server.sessionOf(ann))
  await storage.update(Uploads, id, { set: { storingSince: long } })
  await storage.update(Artifacts, made.id, { set: { storingSince: long } })
  await storage.update(Artifacts, young.id, { set: { storingSince: Date.now() } })
  await blobs.tenant(scope).put(parts('removal begun'))
  await storage.insert(Removals, {
    id: clock.id(),
    orgId: scope.orgId,
    hash: sha256('removal begun'),
    createdAt: long,
  })
  assert.is(
    (await server.call('GET', `/uploads/${id}`, { token: ann.token })).status,
    404,
    'what is not stored is not there',
  )
  assert.is(await server.artifacts().find(scope, 'young'), undefined)
  const job = await queue.enqueue('files.sweep', null)
  await until(async () => (await queue.state(job)) === 'done')
  assert.equal(
    [
      await has('never answered'),
      await has('never told'),
      await has('removal begun'),
      await has('just begun'),
    ],
    [false, false, false, true],
  )
  assert.equal(
    [
      await storage.get(Uploads, id),
      await storage.get(Artifacts, made.id),
      await storage.count(Removals),
    ],
    [undefined, undefined, 0],
  )
  assert.equal(
    await artifact('young', 'just begun', server.sessionOf(ann)),
    young,
    'a repetition with the same content goes on',
  )
})

test.after(() => server.stop())
test.run()
