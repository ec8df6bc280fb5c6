// The key of a provider, over each wire that is spoken: what it proves, and where it goes.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  eachWire,
  good,
  hear,
  onStage,
  openAt,
  passing,
  second,
} from '../../../test/support/model-servers/provider.ts'
import { startModelServer } from '../../../test/support/model-servers/server.ts'
import type { Turn } from '../../../test/support/model-servers/turn.ts'
import { refuses } from '../../../test/conformance/runner.ts'
import { manualClock } from '../../clock/manual.ts'

const each = eachWire(test)

each('a health check asks for the models with the key, and not again at once', async wire => {
  const secrets: Record<string, string> = { RIGHT: 'right-key', WRONG: 'wrong-key-4711' }
  const server = await startModelServer(wire, { key: 'right-key' })
  const clock = manualClock()
  const open = (key: string) =>
    openAt(wire, server.base, `key=${key}`, { clock, secret: name => secrets[name] })
  const right = await open('RIGHT')
  const wrong = await open('WRONG')
  for (let n = 0; n < 5; n++) await right.ping()
  await clock.advance(9999)
  await right.ping()
  assert.is(server.received.length, 1)
  await clock.advance(1)
  await right.ping()
  assert.is(server.received.length, 2)
  const refused = await refuses('UNAVAILABLE', () => wrong.ping())
  assert.match(refused, /compatible.*answered 401.*key is missing or wrong/)
  assert.not.match(refused, '4711')
  await server.stop()
  await clock.advance(20_000)
  assert.match(await refuses('UNAVAILABLE', () => right.ping()), /connection to .* failed/)
  await Promise.all([right.close(), wrong.close()])
})
each('a key comes out nowhere: no log, no error, no catalogue, no other header', async wire => {
  const key = 'sk-planted-0123456789-abcdef'
  const out: string[] = []
  const echoing: readonly Turn[] = [
    { status: 401, error: { type: key, code: key, message: `wrong key ${key}` } },
    { status: 500, body: `<html>${key}</html>` },
    {
      text: 'One two three.',
      inject: {
        before: second[wire],
        frame: `event: error\ndata: {"error":{"type":"${key}","message":"${key}"}}\n\n`,
      },
    },
    { status: 302, headers: { location: `http://${key}@127.0.0.1:1/` } },
  ]
  for (const turn of echoing) {
    await onStage(
      wire,
      [turn],
      async ({ provider, clock, logged, server }) => {
        const heard = await passing(clock, hear(provider))
        out.push(
          JSON.stringify(heard.deltas),
          String(heard.error!.stack),
          JSON.stringify(heard.error),
          String(heard.error!.cause),
          ...logged,
          JSON.stringify(await provider.catalogue()),
        )
        for (const { headers } of server.received) {
          const { authorization, 'x-api-key': own, ...rest } = headers
          assert.ok([authorization, own].join('').includes(key))
          assert.not.match(JSON.stringify(rest), key)
          assert.not.match(JSON.stringify(rest), 'stainless')
        }
      },
      { options: 'key=PLANTED', parts: { secret: name => (name === 'PLANTED' ? key : undefined) } },
    )
  }
  assert.ok(out.join('').length > 500)
  assert.not.ok(out.join('').includes('planted'))
})
each('without a key none is sent', async wire => {
  await onStage(wire, [good], async ({ provider, server, clock }) => {
    await passing(clock, hear(provider))
    const { authorization, 'x-api-key': key } = server.received[0]!.headers
    assert.equal([authorization, key], [undefined, undefined])
  })
})

test.run()
