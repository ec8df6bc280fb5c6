// Uploads over the socket: what is kept of them, and what is read back.
import { connect } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { BlobsEngine } from '#ports/blobs.ts'
import {
  beginUpload,
  sha256,
  startFiles,
  until,
  uploadId,
} from '../../../test/support/files-kit.ts'

const server = await startFiles()
const ann = await server.account()
const text = 'Grüße, 世界 😀\n'

test('an upload is read back: what it is, its text, its bytes', async () => {
  const uploaded = await server.upload(ann, text, {
    filename: "Grüße (1)'s *.txt",
    mime: 'text/plain; charset=utf-8',
  })
  assert.is(uploaded.status, 200, uploaded.text)
  assert.equal(Object.keys(uploaded.body as object), ['upload_id'])
  const { id, created_at, ...told } = await server.read(ann, uploaded)
  assert.is(id, uploadId(uploaded))
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
  } = await server.call('GET', `/uploads/${uploadId(uploaded)}/raw`, { token: ann.token })
  assert.is(status, 200)
  assert.is(raw, page)
  assert.is(headers.get('content-type'), 'text/html')
  assert.is(headers.get('x-content-type-options'), 'nosniff')
  assert.is(
    headers.get('content-disposition'),
    "attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%281%29%27s%20%2a.html",
  )
  const head = await fetch(`${server.base}/uploads/${uploadId(uploaded)}/raw`, {
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

test('the same content is stored once, and a download that lost its content says so', async () => {
  const before = server.blobs().length
  const first = await server.upload(ann, 'twice')
  const second = await server.upload(ann, 'twice')
  assert.is.not(uploadId(first), uploadId(second))
  assert.is(server.blobs().length, before + 1)
  const blobs = server.engine<BlobsEngine>('blobs').within(ann.org_id)
  await blobs.remove(sha256('twice'))
  const lost = await server.call('GET', `/uploads/${uploadId(first)}/raw`, { token: ann.token })
  assert.is(lost.status, 503)
})

test('with all places and the line full, an upload is told when to come back', async () => {
  const small = await startFiles({ env: { FILES_RECEIVING_MAX: '1', FILES_LINE_MAX: '1' } })
  const somebody = await small.account()
  const start = () =>
    beginUpload(small, somebody, {}, ['{"filename":"a","mime":"a/b","content_base64":"'])
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

test('nothing was an internal error', () =>
  assert.equal(
    server.logged.filter(line => line.includes('request.failed')),
    [],
  ))

test.after(() => server.stop())
test.run()
test.after(() => server.stop())
test.run()
