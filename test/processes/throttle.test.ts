// What one may do so and so often is counted over all processes together: two on one storage in
// this process, and two real ones on the MongoDB that MONGODB_URL names.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { memoryLimits } from '#adapters/limits/memory.ts'
import { systemClock } from '#adapters/clock/system.ts'
import { lasting, until } from '../support/engine.ts'
import { endProcesses, startProcess } from '../support/process.ts'
import { endServers, startServer } from '../conformance/plugin/server.ts'
import { openStore } from './store.ts'

type Said = {
  readonly status: number
  readonly code: string | undefined
  readonly retryAfter: number
  readonly body: Record<string, string>
}
/** `bases`: of two processes that share everything but their memory. */
type Place = { readonly bases: readonly string[]; readonly outbox: string }
type Asked = { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }

const dir = mkdtempSync(join(tmpdir(), 'agent-platform-throttle-'))
const password = 'a right password'
const wrong = 'a wrong password'
/** Slow enough that none is given back while a test runs. */
const settings = {
  AUTH_SECRET: 'the same for both of them, as it must be',
  LIMITS_RUNS_PER_SECOND: '0.001',
  LIMITS_RUNS_BURST: '6',
  LIMITS_REGISTER_PER_HOUR: '7',
  MODELS_URL: 'scripted:?tokens=1&interval_ms=0',
}

async function post(base: string, path: string, { body, headers = {} }: Asked): Promise<Said> {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body ?? {}),
  })
  const text = await response.text()
  const answer = (text === '' ? {} : JSON.parse(text)) as Record<string, string>
  return {
    status: response.status,
    code: answer['code'],
    retryAfter: Number(response.headers.get('retry-after') ?? 0),
    body: answer,
  }
}
/** A verified account that signs in by its password. */
async function signedUp({
  bases: [base],
  outbox,
}: Place): Promise<{ readonly email: string; readonly token: string }> {
  const email = `user-${crypto.randomUUID()}@example.org`
  assert.is((await post(base!, '/auth/register', { body: { email, password } })).status, 202)
  let code: string | undefined
  await until(
    'the letter',
    () =>
      (code = globSync(`${outbox}/*`)
        .map(file => readFileSync(file, 'utf8'))
        .find(text => text.includes(email))
        ?.match(/\b\d{6}\b/)?.[0]) !== undefined,
  )
  const { status, body } = await post(base!, '/auth/verify', { body: { email, code } })
  assert.is(status, 200)
  return { email, token: body['access_token']! }
}
/**
 * One after the other, at the processes in turn; how many came before the first 429, and that one
 * and those after it.
 */
async function inTurn(
  { bases }: Place,
  tries: number,
  path: string,
  asked: Asked,
): Promise<{ readonly passed: number; readonly refused: readonly Said[] }> {
  const said: Said[] = []
  for (let n = 0; n < tries; n++) said.push(await post(bases[n % bases.length]!, path, asked))
  const first = said.findIndex(({ status }) => status === 429)
  return { passed: first, refused: said.slice(first) }
}

function holds(name: string, open: () => Promise<Place>): void {
  let place: Place
  const ready = async () => (place ??= await open())

  test(`${name}: wrong passwords count over both processes, for absent accounts too`, async () => {
    const at = await ready()
    const { email } = await signedUp(at)
    for (const who of [email, `nobody-${crypto.randomUUID()}@example.org`]) {
      const { passed, refused } = await inTurn(at, 8, '/auth/login', {
        body: { email: who, password: wrong },
      })
      assert.equal(
        [passed, refused.map(({ status, code }) => `${status} ${code}`)],
        [5, Array.from({ length: 3 }, () => '429 LOGIN_THROTTLED')],
      )
      for (const base of at.bases) {
        const { status, code, retryAfter } = await post(base, '/auth/login', {
          body: { email: who, password },
        })
        assert.equal([status, code], [429, 'LOGIN_THROTTLED'])
        assert.ok(retryAfter > 30 && retryAfter <= 60, `told to wait ${retryAfter} s`)
      }
    }
  })

  test(`${name}: a right password at one process clears the count for the other`, async () => {
    const at = await ready()
    const { email } = await signedUp(at)
    const [one, other] = at.bases
    for (let n = 0; n < 4; n++)
      assert.is(
        (await post(one!, '/auth/login', { body: { email, password: wrong } })).code,
        'CREDENTIALS_INVALID',
      )
    assert.is((await post(other!, '/auth/login', { body: { email, password } })).status, 200)
    const { passed } = await inTurn(at, 6, '/auth/login', { body: { email, password: wrong } })
    assert.is(passed, 5)
  })

  test(`${name}: wrong passwords at both processes at once are not let through twice`, async () => {
    const at = await ready()
    const { email } = await signedUp(at)
    const said = await Promise.all(
      Array.from({ length: 16 }, (_, n) =>
        post(at.bases[n % 2]!, '/auth/login', { body: { email, password: wrong } }),
      ),
    )
    assert.equal(
      [
        said.filter(({ code }) => code === 'CREDENTIALS_INVALID').length,
        said.filter(({ code }) => code === 'LOGIN_THROTTLED').length,
      ],
      [5, 11],
    )
  })

  test(`${name}: users and addresses are bounded over both processes`, async () => {
    const at = await ready()
    const [ann, bob] = [await signedUp(at), await signedUp(at)]
    for (const { token } of [ann, bob]) {
      const { passed, refused } = await inTurn(at, 8, '/chat', {
        body: { message: 'hello' },
        headers: { authorization: `Bearer ${token}` },
      })
      assert.equal([passed, refused.map(({ code }) => code)], [6, ['RATE_LIMITED', 'RATE_LIMITED']])
      assert.ok(refused.every(({ retryAfter }) => retryAfter > 0))
    }
    const exchanges = await inTurn(at, 62, '/auth/token', {
      headers: { 'x-api-key': 'no key at all' },
    })
    assert.equal(
      [exchanges.passed, exchanges.refused.map(({ code }) => code)],
      [60, ['RATE_LIMITED', 'RATE_LIMITED']],
    )
    assert.ok(exchanges.refused.every(({ retryAfter }) => retryAfter > 0 && retryAfter <= 60))
    // Five have registered before.
    const { passed, refused } = await inTurn(at, 4, '/auth/register', {
      body: { email: `late-${crypto.randomUUID()}@example.org`, password },
    })
    assert.equal([passed, refused.map(({ code }) => code)], [2, ['RATE_LIMITED', 'RATE_LIMITED']])
  })
}

holds('two in one', async () => {
  const outbox = join(dir, 'one')
  const given = {
    ...lasting({ exclusive: false }),
    limits: { ...memoryLimits({ clock: systemClock() }), close: async () => undefined },
  }
  const env = { ...settings, MAIL_URL: `outbox:${outbox}` }
  const servers = [await startServer({ given, env }), await startServer({ given, env })]
  return { outbox, bases: servers.map(({ base }) => base) }
})

const store = await openStore()
if ('why' in store) test.skip(`two processes (${store.why})`, () => undefined)
else {
  holds('two processes', async () => {
    const outbox = join(dir, 'two')
    const env = { ...settings, STORAGE_URL: store.database.url.href, MAIL_URL: `outbox:${outbox}` }
    const processes = [
      await startProcess({ ...env, DATA_DIR: join(dir, 'a') }),
      await startProcess({ ...env, DATA_DIR: join(dir, 'b') }),
    ]
    return { outbox, bases: processes.map(({ base }) => base) }
  })
}
test.after(async () => {
  await endServers()
  await endProcesses()
  if (!('why' in store)) await store.close()
  rmSync(dir, { recursive: true, force: true })
})
test.run()
