// Settings that cannot be served with: the program says which, in a sentence, and ends. And the
// list of those that there are.
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { helpOf } from '../../../kernel/cli/settings-help.ts'
import { readConfig } from '../../../kernel/settings/settings.ts'
import ops from '../../../plugins/ops/plugin.ts'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { runMain } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-settings-'))
const file = join(home, 'file')
writeFileSync(file, 'no certificate, no folder')
const taken = createServer().listen(0, '127.0.0.1')
await once(taken, 'listening')
const busy = String((taken.address() as AddressInfo).port)

for (const [env, sentence] of [
  [
    { STORAGE_URL: 'foo:bar' },
    /^STORAGE_URL: there is no adapter "foo:"; there are .*memory: .*sqlite:/,
  ],
  [
    { MODELS_URL: 'scripted:?token=20' },
    /^MODELS_URL: scripted: has no option "token"; there are tokens, interval_ms/,
  ],
  [{ MODELS_URL: 'scripted:?tokens=many' }, /^MODELS_URL \(tokens\): must be a number/],
  [
    { STORAGE_URL: 'sqlite:?nonsense=1' },
    /^STORAGE_URL: sqlite: has no option "nonsense"; there are bytes/,
  ],
  [{ MAIL_URL: 'nonsense' }, /^MAIL_URL: is not a URL; it starts with one of .*smtp:/],
  [{ PORT: 'abc' }, /^PORT: must be integer/],
  [{ PORT: busy }, /^port \d+ is not available: .*EADDRINUSE/],
  [{ LIMITS_RUNS_BURST: '-1' }, /^LIMITS_RUNS_BURST: must be a number above 0/],
  [{ DRAIN_MS: '-1' }, /^DRAIN_MS: must be >= 0/],
  [{ DATA_DIR: file }, /^DATA_DIR: .* cannot be made a private folder/],
  [{ TLS_CERT: '/nowhere.pem' }, /^TLS_CERT: is needed together with TLS_KEY/],
  [
    { TLS_CERT: '/nowhere.pem', TLS_KEY: file },
    /^TLS_CERT: \/nowhere.pem cannot be read \(ENOENT\)/,
  ],
  [
    { TLS_CERT: file, TLS_KEY: file },
    /^TLS_CERT: and TLS_KEY must be a certificate and its own key/,
  ],
] as const)
  test(`${Object.entries(env)
    .map(pair => pair.join('=').replace(home, '').replace(busy, 'taken'))
    .join(' ')} is refused with a sentence`, async () => {
    const { code, err } = await runMain(['start'], { DATA_DIR: join(home, 'data'), ...env })
    assert.match(err, sentence)
    assert.is(code, 1, 'it ends by itself')
    assert.is(err.trim().split('\n').length, 1, 'one sentence, no stack trace')
  })

test('an option of the command line that there is not is refused', async () => {
  const { code, err } = await runMain(['start', '--prot', '8081'], { DATA_DIR: join(home, 'data') })
  assert.is(code, 1)
  assert.match(err, /'--prot'/)
})

test('--help lists every command and every setting once, and no secret', async () => {
  const secret = 'do-not-show-this-secret-to-anybody'
  const { code, out } = await runMain(['--help'], {
    AUTH_SECRET: secret,
    MAIL_URL: `smtp://ann:${secret}@example.org`,
  })
  assert.is(code, 0)
  const settings = helpOf(await loadPlugins()).map(({ name }) => name)
  for (const word of [
    'start',
    'admin create-user',
    'backup',
    'restore',
    'PORT',
    'HOST',
    'DATA_DIR',
    'LOG_LEVEL',
    'STORAGE_URL',
    'MODELS_URL',
    'MAIL_URL',
    'TRUST_PROXY',
    'TLS_CERT',
    'TLS_KEY',
    'TLS_REDIRECT_PORT',
    'METRICS_PORT',
    'DRAIN_MS',
    'AUTH_SECRET',
    'SIGNUP_CREDITS',
    'RUNS_LEASE_MS',
    'LIMITS_RUNS_PER_SECOND',
    'LIMITS_RUNS_BURST',
    'LIMITS_TOKEN_PER_MINUTE',
    'LIMITS_REGISTER_PER_HOUR',
    'LIMITS_LETTERS_PER_HOUR',
    'LIMITS_LOGIN_BURST',
    'LIMITS_LOGIN_PER_SECOND',
    ...settings,
  ])
    assert.is(out.match(new RegExp(`^ +${word}(?: |$)`, 'gm'))?.length, 1, word)
  assert.not.match(out, new RegExp(secret))
})

test.after(() => {
  taken.close()
  rmSync(home, { recursive: true, force: true })
})
test("a plugin's setting is refused under the name by which it is set", () => {
  assert.throws(() => readConfig(ops, { METRICS_PORT: 'x' }), /^METRICS_PORT: must be integer/)
})

test.run()
