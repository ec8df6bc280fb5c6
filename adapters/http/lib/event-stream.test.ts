import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#contracts/faults.ts'
import { createEventStreams } from './event-stream.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** A response that accepts everything at once, and keeps it. */
function reader() {
  const sent: string[] = []
  const response = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableLength: 0,
    write: (text: string) => sent.push(text) > 0,
    end: () => void response.emit('close'),
  })
  return { sent, response: response as unknown as ServerResponse }
}
const streams = () => createEventStreams({ total: 10, perUser: 10, perAddress: 10 })

test('an open stream keeps none of the events that it has sent', async () => {
  const kept: WeakRef<object>[] = []
  const { response, sent } = reader()
  const waits = Promise.withResolvers<void>()
  let last = Promise.withResolvers<void>()
  async function* events() {
    for (let seq = 1; seq <= 500; seq++) {
      const event = { seq, type: 'token', data: { text: 'x'.repeat(1000) } }
      kept.push(new WeakRef(event))
      yield [event]
      await new Promise(resolve => setImmediate(resolve))
    }
    last.resolve()
    await waits.promise
  }
  const server = streams()
  const ended = server.send(response, events())
  await last.promise
  // Weak references hold until the end of the turn in which they were made.
  await new Promise(resolve => setTimeout(resolve, 10))
  collectGarbage()
  const alive = kept.filter(one => one.deref() !== undefined).length
  assert.ok(alive < 10, `${alive} of ${sent.length} events are still held`)
  waits.resolve()
  await ended
  server.close()
})
test('a stream without a reader ends at once; a fault is named in a comment', async () => {
  const server = streams()
  const gone = reader()
  const silent = server.send(gone.response, {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
  })
  gone.response.emit('close')
  await silent
  const told = reader()
  await server.send(
    told.response,
    (async function* () {
      throw fault('UNAUTHENTICATED')
    })(),
  )
  assert.match(told.sent.join(''), /^retry: 1000\n\n: UNAUTHENTICATED\. /)
  server.close()
})
test.run()
