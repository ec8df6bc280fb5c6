// What strangers' wrong guesses do to the owner of an account: nothing.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryLimits } from '#adapters/limits/memory.ts'
import { endServers } from '../../../test/conformance/plugin/server.ts'
import {
  password,
  startIdentity,
  testsOn,
  wrongCode,
  type Pair,
} from '../../../test/support/identity-kit.ts'
import { createGuesses } from './guesses.ts'
import { createFairSemaphore } from '../passwords/fair-semaphore.ts'

const email = 'ann@example.org'
const home = '192.0.2.1'

async function served(env: Readonly<Record<string, string>> = {}) {
  const { server, mail, codeFor } = await startIdentity({ TRUST_PROXY: '1', ...env })
  const post = async (from: string, path: string, body: unknown, token?: string) => {
    const answer = await server.call('POST', path, {
      body,
      token,
      headers: { 'x-forwarded-for': from },
    })
    return { ...answer, code: (answer.body as { code?: string } | undefined)?.code }
  }
  const letterCode = () => codeFor(email)
  const login = (from: string, word: string, more = {}) =>
    post(from, '/auth/login', { email, password: word, ...more })
  const signedUp = async (): Promise<Pair> => {
    await post(home, '/auth/register', { email, password })
    return (await post(home, '/auth/verify', { email, code: letterCode() })).body as Pair
  }
  return { mail, server, post, letterCode, login, signedUp }
}
const on = testsOn(served)

on(
  'wrong passwords from many addresses do not keep the owner out of a network that the ' +
    'account knows',
  async ({ login, signedUp }) => {
    await signedUp()
    const statuses = []
    for (let n = 0; n < 8; n++) statuses.push((await login(`198.51.100.${n}`, 'wrong')).status)
    assert.equal(
      statuses,
      [401, 401, 401, 401, 401, 401, 429, 429],
      'networks that it does not know share a bound',
    )
    assert.is((await login('203.0.113.9', password)).status, 429)
    assert.is((await login(home, password)).status, 200)
  },
  { LIMITS_LOGIN_ACCOUNT_BURST: '6' },
)
on(
  'a device that sends its refresh token is not held up by guesses from its own network',
  async ({ login, signedUp, post }) => {
    const { refresh_token } = await signedUp()
    for (let n = 0; n < 6; n++) await login(home, 'wrong')
    assert.is((await login(home, password)).code, 'LOGIN_THROTTLED')
    await post(home, '/auth/refresh', { refresh_token })
    assert.is((await login(home, password, { refresh_token: 'of nobody' })).code, 'LOGIN_THROTTLED')
    assert.is(
      (await login(home, password, { refresh_token })).status,
      200,
      'one that has been used proves the device, too',
    )
    for (let n = 0; n < 5; n++) await login(home, 'wrong', { refresh_token })
    assert.is(
      (await login(home, password, { refresh_token })).code,
      'LOGIN_THROTTLED',
      'its own guesses are bounded',
    )
  },
)
on(
  'one network guesses at no more accounts than its bound; right passwords do not count',
  async ({ login, signedUp, post }) => {
    await signedUp()
    for (let n = 0; n < 9; n++) assert.is((await login('198.51.100.1', password)).status, 200)
    for (let n = 0; n < 4; n++)
      assert.is(
        (
          await post('198.51.100.1', '/auth/login', {
            email: `${n}@example.org`,
            password: 'wrong',
          })
        ).status,
        401,
      )
    assert.is(
      (await post('198.51.100.1', '/auth/login', { email: '5@example.org', password: 'wrong' }))
        .status,
      429,
    )
    assert.is(
      (await post('198.51.100.2', '/auth/login', { email: '5@example.org', password: 'wrong' }))
        .status,
      401,
    )
  },
  { LIMITS_LOGIN_ADDRESS_BURST: '4' },
)
on(
  'an IPv6 network of 64 bits is one guesser, its neighbour another',
  async ({ login, signedUp }) => {
    await signedUp()
    for (let n = 1; n <= 5; n++) assert.is((await login(`2001:db8:0:1::${n}`, 'wrong')).status, 401)
    assert.is((await login('2001:DB8::1:ffff:0:0:6', 'wrong')).status, 429)
    assert.is((await login('2001:db8:0:2::1', 'wrong')).status, 401)
  },
)
on(
  'where strangers have used up a code and the letters, its owner is told the next code',
  async ({ post, letterCode, mail }) => {
    for (let n = 0; n < 12; n++)
      await post(`198.51.100.${n}`, '/auth/register', { email, password })
    assert.is(mail.letters.length, 10)
    const before = letterCode()
    for (let n = 0; n < 60; n++)
      for (let i = 0; i < 5; i++)
        await post(`203.0.113.${n}`, '/auth/verify', {
          email,
          code: before === '000000' ? '000001' : '000000',
        })
    assert.is(
      (await post(home, '/auth/verify', { email, code: before })).status,
      400,
      'it is used up',
    )
    await post(home, '/auth/register', { email, password })
    assert.is(mail.letters.length, 11)
    assert.is((await post(home, '/auth/verify', { email, code: letterCode() })).status, 200)
  },
)

on('wrong codes of strangers do not burn the code of its owner', async ({ post, letterCode }) => {
  await post(home, '/auth/register', { email, password })
  const code = letterCode()
  for (let n = 0; n < 40; n++)
    await post(`198.51.100.${n % 6}`, '/auth/verify', { email, code: wrongCode(code) })
  assert.is((await post('198.51.100.1', '/auth/verify', { email, code })).status, 429)
  assert.is((await post(home, '/auth/verify', { email, code })).status, 200)
})
on(
  'registrations of strangers neither keep the owner from registering nor flood the mailbox',
  async ({ post, letterCode, mail }) => {
    for (let n = 0; n < 9; n++)
      assert.is(
        (await post(`198.51.100.${n}`, '/auth/register', { email, password: `stranger ${n}` }))
          .status,
        202,
      )
    assert.is((await post(home, '/auth/register', { email, password })).status, 202)
    assert.is(mail.letters.length, 4)
    const { status, body } = await post(home, '/auth/verify', { email, code: letterCode() })
    assert.equal([status, (body as { has_password: boolean }).has_password], [200, false])
  },
  { LIMITS_LETTERS_TO_BURST: '4' },
)
on(
  'refresh tokens that are none are bounded by network; a real one passes all the same',
  async ({ post, signedUp }) => {
    const { refresh_token } = await signedUp()
    const codes = []
    for (let n = 0; n < 4; n++)
      codes.push((await post(home, '/auth/refresh', { refresh_token: `none ${n}` })).code)
    assert.equal(codes, ['REFRESH_INVALID', 'REFRESH_INVALID', 'REFRESH_INVALID', 'RATE_LIMITED'])
    assert.is((await post(home, '/auth/refresh', { refresh_token })).status, 200)
  },
  { LIMITS_REFRESH_ADDRESS_BURST: '3' },
)
test('a guess that nobody judged is not counted, nor one that another bound refused', async () => {
  const limits = memoryLimits({ clock: manualClock() })
  const once = { count: 1, perMs: 60_000 }
  const guesses = createGuesses({ limits, rates: { login: once, login_address: once } })
  const [own, address] = [
    { name: 'login', subject: 'ann' },
    { name: 'login_address', subject: home },
  ]
  const shed = async () => {
    throw new Error('shed')
  }
  assert.is(
    await guesses.judged([own, address], shed).catch((error: Error) => error.message),
    'shed',
  )
  assert.is(await guesses.judged([address], async () => false), false)
  assert.is(
    await guesses.judged([own, address], async () => false).catch(error => error.code),
    'LOGIN_THROTTLED',
  )
  assert.is(await guesses.judged([own], async () => true), true)
  assert.is(await guesses.judged([own], async () => false), false)
})
test('of those who wait, each key has its turn; the key with the most gives way', async () => {
  const refused: string[] = []
  const order: string[] = []
  const run = createFairSemaphore({
    atOnce: 1,
    atOncePerKey: 1,
    waitingMax: 4,
    refuse: () => new Error('full'),
  })
  const gate = Promise.withResolvers<void>()
  const tasks = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1'].map(name =>
    run(name[0]!, async () => (await gate.promise, void order.push(name))).catch(
      () => void refused.push(name),
    ),
  )
  gate.resolve()
  await Promise.all(tasks)
  assert.equal(refused.sort(), ['a3', 'a4', 'a5'])
  assert.equal(order, ['a0', 'a1', 'b1', 'c1', 'a2'])
})
test.after(endServers)
test.run()
