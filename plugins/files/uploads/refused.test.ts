// Uploads that are refused or break off: nothing stays behind.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import type { StorageEngine } from '#ports/storage.ts'
import { base64, beginUpload, startFiles, until } from '../../../test/support/files-kit.ts'
import { Uploads } from '../collections.ts'

const server = await startFiles()
const ann = await server.account()
const bob = await server.account()

test("a session must be the caller's own; a refused upload leaves nothing behind", async () => {
  const before = server.blobs()
  const mine = server.sessionOf(ann)
  const theirs = server.sessionOf(bob)
  for (const session_id of [theirs, crypto.randomUUID()]) {
    const refused = await server.upload(ann, 'for a session that is not mine', { session_id })
    assert.is(refused.status, 404)
    assert.match(refused.text, /no such session/)
    assert.is(
      (
        await server.call('POST', '/artifacts', {
          token: ann.token,
          body: {
            filename: 'a',
            mime: 'a/b',
            content: 'for a session that is not mine',
            session_id,
          },
        })
      ).status,
      404,
    )
  }
  assert.equal(server.blobs(), before)
  assert.is(
    (await server.read(ann, await server.upload(ann, 'x', { session_id: mine })))['session_id'],
    mine,
  )
})

test('a body that is wrong behind the content leaves nothing behind either', async () => {
  const before = server.blobs()
  const content = base64('wrong behind the content')
  for (const rest of [
    '"filename":"a/b","mime":"a/b"}',
    '"filename":"a","mime":"a/b","more":1}',
    '"filename":"a","mime":"a/b"',
    '"filename":"a","mime":"a/b"}}',
    '"content_base64":"AAAA","filename":"a","mime":"a/b"}',
  ]) {
    const refused = await server.call('POST', '/uploads', {
      token: ann.token,
      raw: `{"content_base64":"${content}",${rest}`,
    })
    assert.is(refused.status, 400, rest)
  }
  assert.is(
    (
      await server.call('POST', '/uploads', {
        token: ann.token,
        raw: `{"filename":"a","mime":"a/b","content_base64":"${content}!"}`,
      })
    ).status,
    400,
  )
  assert.equal(server.blobs(), before)
  assert.is(
    (
      await server.call('POST', '/uploads', {
        token: ann.token,
        raw: `{"content_base64":"${content}","filename":"a","mime":"a/b"}`,
      })
    ).status,
    200,
  )
  assert.is(server.blobs().length, before.length + 1)
})

test('an upload whose client goes away leaves nothing behind', async () => {
  const before = server.blobs()
  const part = 'QUJD'.repeat(100_000)
  for (const gone of [
    ['{"filename":"a","mime":"a/b","content_base64":"', part, part],
    ['{"content_base64":"', part, '","filename":"a"'],
  ]) {
    const { sending } = beginUpload(server, ann, { 'transfer-encoding': 'chunked' }, gone)
    await until(() => server.blobs().length > before.length)
    sending.destroy()
    await until(() => server.blobs().length === before.length)
  }
  assert.equal(server.blobs(), before)
})

test('a body announced too large is refused unread, a wrong one before its end', async () => {
  const { answered: large, sending } = beginUpload(
    server,
    ann,
    { 'content-length': String(301 << 20) },
    ['{"filename":'],
  )
  assert.is((await large).statusCode, 413)
  assert.is((await large).headers.connection, 'close')
  sending.destroy()
  const { answered: wrong, sending: second } = beginUpload(
    server,
    ann,
    { 'content-length': String(100 << 20) },
    ['{"filename":"a/b","content_base64":"'],
  )
  assert.is((await wrong).statusCode, 400)
  second.destroy()
})

test('a session that goes while its file is being stored leaves nothing behind', async () => {
  const before = server.blobs()
  const session_id = server.sessionOf(ann)
  const storage = server.engine<StorageEngine>('storage')
  const { sending, answered } = beginUpload(server, ann, { 'transfer-encoding': 'chunked' }, [
    `{"filename":"a","mime":"text/plain","session_id":"${session_id}","content_base64":"AAAA`,
  ])
  const insert = storage.insert
  // The moment after the document was written and before its content is in place.
  storage.insert = async (collection, document) => {
    await insert(collection, document)
    if (collection.name === 'uploads')
      await server.uploads().removeOfSession({ orgId: ann.org_id, userId: ann.user_id }, session_id)
  }
  sending.end('"}')
  assert.is((await answered).statusCode, 404)
  storage.insert = insert
  assert.equal(server.blobs(), before)
})

test('a document whose content cannot be stored goes too', async () => {
  const before = server.blobs()
  const storage = server.engine<StorageEngine>('storage')
  const count = await storage.count(Uploads)
  const insert = storage.insert
  storage.insert = async (collection, document) => {
    await insert(collection, document)
    if (collection.name === 'uploads') throw fault('STORAGE_FULL')
  }
  assert.is((await server.upload(ann, 'no room for this')).status, 503)
  storage.insert = insert
  assert.equal([server.blobs(), await storage.count(Uploads)], [before, count])
})

test('nothing was an internal error', () =>
  assert.equal(
    server.logged.filter(line => line.includes('request.failed')),
    [],
  ))

test.after(() => server.stop())
test.run()
test.after(() => server.stop())
test.run()
