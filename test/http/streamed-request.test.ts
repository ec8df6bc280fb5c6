// A request whose body is read as a stream: its bounds, and the ways in which it breaks off.
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { streamBody as streamRequest } from '../../adapters/http/lib/stream-body.ts'

/** As node:http's, with a head of its own. */
const requestOf = (headers: Record<string, string>) =>
  Object.assign(new PassThrough(), { headers }) as unknown as IncomingMessage & PassThrough
const bounds = { bytesMax: 10, bytesPerSecondMin: 1, enter: () => () => undefined }
const lengthOf = async (stream: AsyncIterable<Uint8Array>) =>
  (await Array.fromAsync(stream)).reduce((sum, { length }) => sum + length, 0)

test('a request is bounded by what its head says, and by what comes', async () => {
  assert.throws(
    () => streamRequest(requestOf({ 'content-length': '11' }), bounds),
    /larger than 10 bytes/,
  )
  assert.throws(
    () => streamRequest(requestOf({ 'content-length': '1', 'content-encoding': 'gzip' }), bounds),
    /Content-Encoding/,
  )
  assert.is(await lengthOf(streamRequest(requestOf({}), bounds)), 0)
  const chunked = requestOf({ 'transfer-encoding': 'chunked' })
  chunked.write('0123456789')
  const seen = lengthOf(streamRequest(chunked, bounds))
  chunked.write('x')
  await seen.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /larger than 10 bytes/),
  )
  assert.not.ok(chunked.destroyed, 'the refusal can still be sent')
})

test('a request that breaks off, and one that comes to a halt, are told apart', async () => {
  const broken = requestOf({ 'content-length': '5' })
  const reading = lengthOf(streamRequest(broken, bounds))
  broken.write('abc')
  broken.destroy(new Error('aborted'))
  await reading.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /the body ended early/),
  )
  const silent = requestOf({ 'content-length': '5' })
  const waiting = lengthOf(streamRequest(silent, { ...bounds, graceMs: 10 }))
  silent.write('a')
  await waiting.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /the body came too slowly/),
  )
})

test.run()
