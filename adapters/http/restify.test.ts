// What each request may expect: a body that is asked for, its address, and an answer at the stop.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { say } from '../../test/hostile/wire.ts'
import { ended, get, holding, serving, until } from '../../test/support/http-adapter.ts'

const serve = serving(test)

test('a body is asked for when somebody wants it', async () => {
  const { port } = await serve()
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: ` +
    `100-continue\r\nContent-Length: 2\r\n\r\n`
  assert.match((await say(port, [head('/body'), '{}'])).head, /^HTTP\/1\.1 100 Continue/)
  assert.match((await say(port, [head('/nowhere')])).head, /^HTTP\/1\.1 404/)
  assert.match((await say(port, [head('/unread')])).head, /^HTTP\/1\.1 200/)
})

test('an address has one spelling and no port', async () => {
  const { port } = await serve()
  const said = async (forwarded: string) =>
    (
      JSON.parse(
        (await say(port, [get('/who', 'Connection: close', `X-Forwarded-For: ${forwarded}`)])).body,
      ) as { address: string }
    ).address
  for (const [given, address] of [
    ['1.2.3.4:5678', '1.2.3.4'],
    ['[2001:DB8:0:0::1]:443', '2001:db8::1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['fe80::1%eth0', 'fe80::1'],
    ['evil, 1.2.3.4', '1.2.3.4'],
    ['unknown', '127.0.0.1'],
    ['1.2.3.4.5', '127.0.0.1'],
    ['', '127.0.0.1'],
  ] as const)
    assert.is(await said(given), address, given)
})

test('what is under way at a stop is answered, what comes later is refused', async () => {
  const { port, server, seen, release } = await serve()
  const socket = await holding(port, get('/gate') + get('/who'))
  await until(() => seen.length === 1, 'the first is inside')
  const stopped = server.close()
  const text = ended(socket)
  release()
  await stopped
  assert.match(await text, /^HTTP\/1\.1 200/)
  assert.is(seen.length, 1, 'the second never came in')
})

test.run()
