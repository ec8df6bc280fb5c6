// The kit against the store that S3_URL names (a whole BLOBS_URL), and what a connection that
// breaks, a store that is away and one that answers wrongly do to it.
import { createHash, randomUUID } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import { blobsKit, chunks, whole } from '../../test/conformance/blobs.ts'
import { putFromTwo } from '../../test/support/children/blobs-two.ts'
import { retainedBuffers } from '../../test/support/retained-buffers.ts'
import { opening } from '../../test/conformance/opening.ts'
import { freePort } from '../../test/support/process.ts'
import { scopedBlobs } from '../../test/conformance/scoped.ts'
import { systemClock } from '../clock/system.ts'
import adapter from './s3.ts'

const ownOrg = '01890000-0000-7000-8000-00000000000a'
const s3Url = process.env['S3_URL']
const clock = systemClock()
const home = await fs.mkdtemp(join(tmpdir(), 'blobs-s3-'))
const keys: Record<string, string> = {
  AWS_ACCESS_KEY_ID: 'an-id',
  AWS_SECRET_ACCESS_KEY: 'hidden-word',
}
// A pause between two tries keeps no process alive, and here nothing else does.
const alive = setInterval(() => undefined, 1000)
const open = (url: string, secrets = keys) =>
  adapter.open(opening(url, { clock, dataDir: home, secret: name => secrets[name] }))
const leftovers = () => fs.readdir(join(home, 'spool'))
const failure = async (call: () => Promise<unknown>): Promise<Error> =>
  call().then(
    () => assert.unreachable() as never,
    (error: Error) => error,
  )
/** A prefix of its own. */
const place = (): string => {
  const url = new URL(s3Url!)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${randomUUID()}`
  return url.href
}
async function* pattern(bytes: number): AsyncGenerator<Uint8Array> {
  const part = Buffer.alloc(65_536, 'abc')
  for (let at = 0; at < bytes; at += part.length)
    yield part.subarray(0, Math.min(part.length, bytes - at))
}
/** What a failed test left open would keep the file from ending. */
const servers: Server[] = []
/** A store that answers as it is told; what it was asked is kept. */
async function storeThat(
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
  port = 0,
): Promise<{ url: string; port: number; asked: string[]; server: Server }> {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(
      `${request.method} ` +
        `${request.url!.split('?')[0]}${request.headers.range ? ` ${request.headers.range}` : ''}`,
    )
    const body = Buffer.concat((await Array.fromAsync(request).catch(() => [])) as Buffer[])
    if (request.method === 'HEAD' && request.url!.split('?')[0]!.replace(/\/$/, '') === '/bucket')
      response.end()
    else answer(request, response, body)
  }).listen(port, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const at = (server.address() as { port: number }).port
  return {
    url: `s3://bucket?endpoint=http://127.0.0.1:${at}&pathStyle=true`,
    port: at,
    asked,
    server,
  }
}
const closed = (server: Server) =>
  new Promise(done => {
    server.close(done)
    server.closeAllConnections()
  })

if (s3Url === undefined) test.skip('s3: the kit (S3_URL is not set)', () => undefined)
else {
  for (const [name, face] of [
    ['s3', (engine: BlobsEngine) => engine],
    ['s3, of a tenant', scopedBlobs],
  ] as const)
    blobsKit(test, name, {
      survives: true,
      place: async () => {
        const url = place()
        return { open: async () => face(await open(url)), leftovers }
      },
    })
  test('s3: two processes put the same contents at once: each is stored once', async () => {
    const url = place()
    const [one, other] = await putFromTwo({
      url,
      orgId: ownOrg,
      bytes: 600_000,
      times: 8,
      env: { ...keys, DATA_DIR: home },
    })
    assert.equal([one, new Set(one).size, await leftovers()], [other, 8, []])
    const engine = await open(url)
    assert.ok((await whole(engine.within(ownOrg), one![3]!)).equals(Buffer.alloc(600_000, 4)))
    await engine.close()
  })
  test('s3: 40 MiB go in and out in pieces, and memory holds only some of them', async () => {
    const engine = await open(place())
    const blobs = engine.within(ownOrg)
    const bytes = 40 * 1_048_576
    const { watched, most } = retainedBuffers()
    const { hash } = await blobs.put(watched(pattern(bytes)))
    let read = 0
    for await (const part of watched(blobs.get(hash))) read += part.length
    assert.is(read, bytes)
    assert.ok(most() < 24 * 1_048_576, `${Math.round(most() / 1_048_576)} MiB were held`)
    await engine.close()
  })
}

test('s3: the signature covers the hash of the blob; a stored blob is not sent again', async () => {
  const stored = new Map<string, Buffer>()
  const { url, server, asked } = await storeThat((request, response, body) => {
    const path = request.url!.split('?')[0]!
    if (request.method === 'HEAD')
      response
        .writeHead(stored.has(path) ? 200 : 404, {
          'content-length': stored.get(path)?.length ?? 0,
        })
        .end()
    else {
      assert.equal(
        [request.headers['x-amz-content-sha256'], request.headers['x-amz-checksum-sha256']],
        [
          createHash('sha256').update(body).digest('hex'),
          createHash('sha256').update(body).digest('base64'),
        ],
      )
      assert.ok(String(request.headers.authorization).includes('x-amz-content-sha256'))
      stored.set(path, body)
      response.end()
    }
  })
  const engine = await open(url)
  const { hash } = await engine.within(ownOrg).put(chunks(Buffer.alloc(100_000, 'z')))
  await engine.within(ownOrg).put(chunks(Buffer.alloc(100_000, 'z')))
  const path = `/bucket/${ownOrg}/${hash}`
  assert.equal(asked.slice(1), [`HEAD ${path}`, `PUT ${path}`, `HEAD ${path}`])
  await engine.close()
  await closed(server)
})
test('s3: a failed put is retried with all its bytes; a refusal fails at once', async () => {
  let failing = 2
  let status = 503
  const { url, server, asked } = await storeThat((request, response, body) => {
    if (request.method === 'HEAD') response.writeHead(404).end()
    else if (failing-- > 0)
      response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(
          `<Error><Code>${status === 503 ? 'SlowDown' : 'AccessDenied'}</Code><Message>an-id ` +
            `hidden-word ${String(request.headers.authorization)}</Message></Error>`,
        )
    else response.writeHead(body.length === 100_000 ? 200 : 400).end()
  })
  const engine = await open(url)
  const blobs = engine.within(ownOrg)
  assert.is((await blobs.put(chunks(Buffer.alloc(100_000)))).bytes, 100_000)
  assert.is(asked.filter(line => line.startsWith('PUT')).length, 3)
  ;[failing, status, asked.length] = [9, 403, 0]
  const error = await failure(() => blobs.put(chunks(Buffer.alloc(10))))
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(
    error.message,
    'The blob store is not available: it refuses these credentials, or what they ask for ' +
      '(AccessDenied).',
  )
  assert.not.match(
    JSON.stringify([error.message, error.stack, error.cause ?? null, Object.entries(error)]),
    /hidden-word|an-id|Signature/,
  )
  assert.equal([asked.filter(line => line.startsWith('PUT')).length, await leftovers()], [1, []])
  await engine.close()
  await closed(server)
})
test('s3: a read goes on after a broken connection; bytes of another hash fail', async () => {
  const bytes = Buffer.alloc(500_000, 'right')
  const hash = createHash('sha256').update(bytes).digest('hex')
  let held = bytes
  let breaks = true
  const { url, server, asked } = await storeThat((request, response) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0)
    const rest = held.subarray(from)
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length })
    if (from === 0 && breaks)
      response.write(rest.subarray(0, 200_000), () => setTimeout(() => response.destroy(), 50))
    else response.end(rest)
  })
  const engine = await open(url)
  const blobs = engine.within(ownOrg)
  assert.ok((await whole(blobs, hash)).equals(bytes))
  assert.is(asked.at(-1), `GET /bucket/${ownOrg}/${hash} bytes=200000-`)
  ;[held, breaks] = [Buffer.alloc(500_000, 'wrong'), false]
  assert.match(
    (await failure(() => whole(blobs, hash))).message,
    /what it holds is not what its address says/,
  )
  await engine.close()
  await closed(server)
})
test('s3: an error names the absent store; the same engine works when it is back', async () => {
  const port = await freePort()
  const stored = new Map<string, Buffer>()
  const answer: Parameters<typeof storeThat>[0] = ({ method, url }, response, body) => {
    const path = url!.split('?')[0]!
    if (method === 'PUT') response.end(void stored.set(path, body))
    else
      response
        .writeHead(stored.has(path) ? 200 : 404, {
          'content-length': stored.get(path)?.length ?? 0,
        })
        .end(method === 'GET' ? stored.get(path) : undefined)
  }
  assert.match(
    (await failure(() => open(`s3://bucket?endpoint=http://127.0.0.1:${port}`))).message,
    /^The blob store is not available: the connection failed \(/,
  )
  const first = await storeThat(answer, port)
  const engine = await open(first.url)
  const blobs = engine.within(ownOrg)
  const { hash } = await blobs.put(chunks(Buffer.from('here')))
  await closed(first.server)
  for (const call of [
    () => blobs.stat(hash),
    () => blobs.put(chunks(Buffer.from('other'))),
    () => whole(blobs, hash),
    () => engine.ping(),
  ])
    assert.match(
      (await failure(call)).message,
      /^The blob store is not available: the connection failed \(ECONN/,
    )
  assert.equal(await leftovers(), [])
  const again = await storeThat(answer, port)
  assert.equal(
    [
      await blobs.stat(hash),
      String(await whole(blobs, hash)),
      (await blobs.put(chunks(Buffer.from('other')))).bytes,
    ],
    [{ hash, bytes: 4 }, 'here', 5],
  )
  await engine.close()
  await closed(again.server)
})
test('s3: what its URL or its keys lack is told by name', async () => {
  for (const [url, secrets, sentence] of [
    ['s3:', keys, /^BLOBS_URL: is written as s3:/],
    ['s3://an-id:hidden-word@bucket', keys, /^BLOBS_URL: must hold no keys/],
    ['s3://bucket?endpoint=ftp://x', keys, /^endpoint: must be an http:/],
    ['s3://bucket?endpoint=http://u:p@x', keys, /^endpoint: /],
    ['s3://bucket?pathStyle=yes', keys, /^pathStyle: /],
    ['s3://bucket', { AWS_ACCESS_KEY_ID: 'an-id' }, /^AWS_SECRET_ACCESS_KEY: is needed/],
  ] as const)
    assert.match(
      (await failure(() => open(url, secrets as Record<string, string>))).message,
      sentence,
    )
})

test.after(async () => {
  await Promise.all(servers.filter(({ listening }) => listening).map(closed))
  clearInterval(alive)
  await fs.rm(home, { recursive: true })
})
test.run()
