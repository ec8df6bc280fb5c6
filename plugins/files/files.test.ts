// Uploads and artifacts over the socket.
import { createHash } from 'node:crypto'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { base64, startFiles, until } from '../../test/support/files-kit.ts'
import type { Account } from '../../test/conformance/plugin/server.ts'
import { Uploads } from './collections.ts'

const server = await startFiles()
const ann = await server.account()
const bob = await server.account()
const idOf = ({ body }: { body: unknown }) => (body as { upload_id: string }).upload_id
const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex')
const text = 'Grüße, 世界 😀\n'

test('an upload is read back: what it is, its text, its bytes', async () => {
  const uploaded = await server.upload(ann, text, {
    filename: "Grüße (1)'s *.txt",
    mime: 'text/plain; charset=utf-8',
  })
  assert.is(uploaded.status, 200, uploaded.text)
  assert.equal(Object.keys(uploaded.body as object), ['upload_id'])
  const { id, created_at, ...told } = await server.read(ann, uploaded)
  assert.is(id, idOf(uploaded))
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT.*Z$/)
  assert.equal(told, {
    filename: "Grüße (1)'s *.txt",
    mime: 'text/plain; charset=utf-8',
    bytes: Buffer.byteLength(text),
    sha256: sha256(text),
    status: 'ready',
    detail: null,
    text,
    text_truncated: false,
    session_id: null,
  })
})

test('a download is the same bytes, and nothing that a browser would show', async () => {
  const page = '<script>alert(1)</script>'
  const uploaded = await server.upload(ann, page, {
    filename: "Grüße (1)'s *.html",
    mime: 'text/html',
  })
  const {
    headers,
    text: raw,
    status,
  } = await server.call('GET', `/uploads/${idOf(uploaded)}/raw`, { token: ann.token })
  assert.is(status, 200)
  assert.is(raw, page)
  assert.is(headers.get('content-type'), 'text/html')
  assert.is(headers.get('x-content-type-options'), 'nosniff')
  assert.is(
    headers.get('content-disposition'),
    "attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%281%29%27s%20%2a.html",
  )
  const head = await fetch(`${server.base}/uploads/${idOf(uploaded)}/raw`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${ann.token}` },
  })
  assert.is(head.status, 200)
  assert.is(await head.text(), '')
})

test('names that lead elsewhere and types that are none are refused by field', async () => {
  for (const filename of [
    '',
    '.',
    '..',
    'a/b',
    'a\\b',
    '../etc/passwd',
    'a\u0000',
    'a\nb',
    'a\u0085',
    'a\ud800',
    'evil\u202etxt.exe',
    'x'.repeat(256),
  ])
    assert.match(
      (await server.upload(ann, 'x', { filename })).text,
      /"detail":"filename:/,
      filename,
    )
  for (const mime of [
    '',
    'text',
    'text/',
    '/x',
    'a b/c',
    'text/plain\r\nX: y',
    'text/plain; charset',
    'text/plain; charset="',
    'text/plän',
    `a/${'x'.repeat(300)}`,
  ])
    assert.match((await server.upload(ann, 'x', { mime })).text, /"detail":"mime:/, mime)
  for (const filename of ['.env', '...', 'a b.txt', 'x'.repeat(255), '😀'.repeat(255)])
    assert.is((await server.upload(ann, 'x', { filename })).status, 200, filename)
})

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

/**
 * Sends the parts and then nothing; answers the response, if there is one before the body has
 * ended.
 */
const begin = ({ token }: Account, headers: Record<string, string>, parts: readonly string[]) => {
  const sending = request(`${server.base}/uploads`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    sending.once('response', resolve).once('error', reject),
  )
  answered.catch(() => 'a client that goes away on purpose gets an error')
  for (const part of parts) sending.write(part)
  return { sending, answered }
}

test('an upload whose client goes away leaves nothing behind', async () => {
  const before = server.blobs()
  const part = 'QUJD'.repeat(100_000)
  for (const gone of [
    ['{"filename":"a","mime":"a/b","content_base64":"', part, part],
    ['{"content_base64":"', part, '","filename":"a"'],
  ]) {
    const { sending } = begin(ann, { 'transfer-encoding': 'chunked' }, gone)
    await until(() => server.blobs().length > before.length)
    sending.destroy()
    await until(() => server.blobs().length === before.length)
  }
  assert.equal(server.blobs(), before)
})

test('a body announced too large is refused unread, a wrong one before its end', async () => {
  const { answered: large, sending } = begin(ann, { 'content-length': String(301 << 20) }, [
    '{"filename":',
  ])
  assert.is((await large).statusCode, 413)
  assert.is((await large).headers.connection, 'close')
  sending.destroy()
  const { answered: wrong, sending: second } = begin(ann, { 'content-length': String(100 << 20) }, [
    '{"filename":"a/b","content_base64":"',
  ])
  assert.is((await wrong).statusCode, 400)
  second.destroy()
})

test('more requests on the same connection are answered after an upload', async () => {
  const body = JSON.stringify({ filename: 'a', mime: 'a/b', content_base64: 'AAAA' })
  const upload =
    `POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ` +
    `${ann.token}\r\nContent-Type: application/json\r\nContent-Length: ` +
    `${body.length}\r\n\r\n${body}`
  const socket = connect(Number(new URL(server.root).port), '127.0.0.1')
  const seen: Buffer[] = []
  socket.on('data', (part: Buffer) => seen.push(part))
  socket.write(upload + upload)
  await until(() => Buffer.concat(seen).toString().split('"upload_id"').length === 3)
  socket.destroy()
})

test("an artifact of one's own is created and downloaded", async () => {
  const session_id = server.sessionOf(ann)
  const made = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'plan.md', mime: 'text/markdown', content: text, session_id },
  })
  assert.is(made.status, 201, made.text)
  const { id, created_at, ...told } = made.body as Record<string, unknown>
  assert.ok(created_at)
  assert.equal(told, {
    filename: 'plan.md',
    mime: 'text/markdown',
    bytes: Buffer.byteLength(text),
    sha256: sha256(text),
    session_id,
    run_id: null,
  })
  const { headers, text: raw } = await server.call('GET', `/artifacts/${id}`, { token: ann.token })
  assert.is(raw, text)
  assert.is(headers.get('content-disposition'), "attachment; filename*=UTF-8''plan.md")
  assert.is(headers.get('x-content-type-options'), 'nosniff')
  const again = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'plan.md', mime: 'text/markdown', content: text },
  })
  assert.is.not((again.body as { id: string }).id, id, 'two creations are two artifacts')
  // Longer than anything that is held whole.
  const long = 'ü'.repeat(3 << 20)
  const stored = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'long.md', mime: 'text/markdown', content: long },
  })
  assert.equal([stored.status, (stored.body as { sha256: string }).sha256], [201, sha256(long)])
})

test('the same content is stored once, and a download that lost its content says so', async () => {
  const before = server.blobs().length
  const first = await server.upload(ann, 'twice')
  const second = await server.upload(ann, 'twice')
  assert.is.not(idOf(first), idOf(second))
  assert.is(server.blobs().length, before + 1)
  const blobs = server.engine<BlobsEngine>('blobs').within(ann.org_id)
  await blobs.remove(sha256('twice'))
  const lost = await server.call('GET', `/uploads/${idOf(first)}/raw`, { token: ann.token })
  assert.is(lost.status, 503)
})

test('with all places and the line full, an upload is told when to come back', async () => {
  const small = await startFiles({ env: { FILES_RECEIVING_MAX: '1', FILES_LINE_MAX: '1' } })
  const { token } = await small.account()
  const start = () => {
    const sending = request(`${small.base}/uploads`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    const answered = new Promise<IncomingMessage>((resolve, reject) =>
      sending.once('response', resolve).once('error', reject),
    )
    sending.write('{"filename":"a","mime":"a/b","content_base64":"')
    return { sending, answered }
  }
  const uploads = [start(), start(), start()]
  const { statusCode, headers } = await Promise.race(uploads.map(({ answered }) => answered))
  assert.equal([statusCode, headers['retry-after']], [429, '30'])
  for (const { sending } of uploads) sending.end('AAAA"}')
  const statuses = (await Promise.allSettled(uploads.map(({ answered }) => answered))).flatMap(
    ({ status, ...rest }) =>
      status === 'fulfilled' && 'value' in rest ? [rest.value.statusCode] : [],
  )
  assert.equal(statuses.sort(), [200, 200, 429])
  await small.stop()
})

test('a session that goes while its file is being stored leaves nothing behind', async () => {
  const before = server.blobs()
  const session_id = server.sessionOf(ann)
  const storage = server.engine<StorageEngine>('storage')
  const { sending, answered } = begin(ann, { 'transfer-encoding': 'chunked' }, [
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
