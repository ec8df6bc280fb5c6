// An event stream ends with the rights of whoever reads it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { definePlugin } from '#kernel'
import { loadPlugins } from '../loading/sources.ts'
import { Accounts, type AccountsApi } from '../../plugins/identity/api.ts'
import { lasting } from '../../test/support/engine.ts'
import { endServers, startServer, type TestServer } from '../../test/conformance/plugin/server.ts'

const password = 'correct horse battery'
let accounts: AccountsApi
const spy = definePlugin({
  name: 'spy',
  version: '1.0.0',
  kernel: '^1.0.0',
  uses: { accounts: Accounts },
  start: deps => {
    accounts = deps.accounts
  },
})

/** A run that answers for an hour, and its stream as text. */
async function following(server: TestServer, token: string) {
  const { body } = await server.call('POST', '/chat', { token, body: { message: 'hello' } })
  const response = await server.stream(token, (body as { run_id: string }).run_id)
  let text = ''
  const ended = (async () => {
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) text += part
  })()
  return { text: () => text, ended, status: response.status }
}
async function served() {
  const clock = manualClock()
  const env = { MODELS_URL: 'scripted:?tokens=100000&interval_ms=36000' }
  const server = await startServer({
    given: { clock },
    plugins: [...(await loadPlugins()), spy],
    env,
  })
  await accounts.create({ email: 'ann@example.org', credits: 1000, password })
  const { body } = await server.call('POST', '/auth/login', {
    body: { email: 'ann@example.org', password },
  })
  return { clock, server, token: (body as { access_token: string }).access_token }
}
const settled = async (clock: ReturnType<typeof manualClock>, ms: number) => {
  for (let passed = 0; passed < ms; passed += 30_000) await clock.leap(30_000)
}

test('an expired token ends its stream with a comment; a new token continues it', async () => {
  const { clock, server, token } = await served()
  const stream = await following(server, token)
  await settled(clock, 14 * 60_000)
  assert.not.match(stream.text(), 'UNAUTHENTICATED')
  await settled(clock, 2 * 60_000)
  await stream.ended
  assert.match(
    stream.text(),
    /\n: UNAUTHENTICATED\. The access token is missing, expired or invalid.*\n\n$/,
  )
  await server.stop()
})
test('a changed password and a suspension end open streams at once', async () => {
  const { server, token } = await served()
  const stream = await following(server, token)
  const changed = await server.call('POST', '/auth/change-password', {
    token,
    body: { current_password: password, new_password: 'another password' },
  })
  await stream.ended
  assert.match(stream.text(), ': UNAUTHENTICATED')
  const next = (changed.body as { access_token: string }).access_token
  const again = await following(server, next)
  const { body } = await server.call('GET', '/auth/me', { token: next })
  await accounts.suspend((body as { user_id: string }).user_id)
  await again.ended
  assert.match(again.text(), ': ACCOUNT_SUSPENDED')
  await server.stop()
})
test('a suspension at another process ends the stream at this one', async () => {
  const given = lasting({ exclusive: false })
  const env = {
    MODELS_URL: 'scripted:?tokens=100000&interval_ms=1000',
    AUTH_SECRET: 'x'.repeat(48),
  }
  const here = await startServer({ given, env })
  const { token, user_id } = await here.account()
  const there = await startServer({ given, env, plugins: [...(await loadPlugins()), spy] })
  const stream = await following(here, token)
  await accounts.suspend(user_id)
  await stream.ended
  assert.match(stream.text(), ': ACCOUNT_SUSPENDED')
  await Promise.all([there.stop(), here.stop()])
})
test.after(endServers)
test.run()
