// A copy of a running installation, and the installation that it becomes.
import { DatabaseSync } from 'node:sqlite'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sqliteSearch } from '#adapters/search/sqlite.ts'
import type { SearchEngine } from '#ports/search.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { backUp, restore } from '../../../plugins/operator/backup.ts'
import { readSettings } from '../../../kernel/settings/settings.ts'
import { commandLine, endProcesses, runMain, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-backup-'))
const folder = (name: string) => join(home, name)
const env = { DATA_DIR: folder('live'), MODELS_URL: 'scripted:?tokens=30&interval_ms=20' }
const password = 'correct horse battery'
type Json = Record<string, unknown>
type Account = { readonly user_id: string; readonly org_id: string; readonly api_key: string }

function client(base: string) {
  const call = async (
    method: string,
    path: string,
    { token, body }: { token?: string; body?: object } = {},
  ) => {
    const response = await fetch(base + path, {
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: response.status, body: (await response.json()) as Json }
  }
  return {
    call,
    tokenOf: async (apiKey: string) =>
      (await call('POST', '/auth/token', { body: { api_key: apiKey } })).body[
        'access_token'
      ] as string,
    chat: async (token: string, message: string) =>
      (await call('POST', '/chat', { token, body: { message } })).body['run_id'] as string,
    /** The events of a run as they stand in its log; heartbeats are not among them. */
    async events(token: string, runId: string): Promise<string[]> {
      const response = await fetch(`${base}/runs/${runId}/events`, {
        headers: { authorization: `Bearer ${token}` },
      })
      return (await response.text()).split('\n\n').filter(frame => frame.startsWith('id: '))
    },
  }
}
const createUser = (email: string) =>
  commandLine<Account>(
    ['admin', 'create-user', '--email', email, '--credits', '100', '--password', password],
    env,
  )

test('a started copy finishes its runs and lacks nothing that was acknowledged', async () => {
  const live = await startProcess(env)
  const here = client(live.base)
  const account = await createUser('ann@example.org')
  const token = await here.tokenOf(account.api_key)
  const ended = await here.chat(token, 'one')
  const endedEvents = await here.events(token, ended)
  const underWay = await Promise.all(
    Array.from({ length: 8 }, (_, i) => here.chat(token, `${i} [[tokens=80]] [[interval_ms=40]]`)),
  )
  // Kept on another disk, as an operator may do.
  symlinkSync(folder('elsewhere'), join(env.DATA_DIR, 'linked'))
  // What is half written lies in folders whose names begin with a dot, and may be gone soon.
  writeFileSync(join(env.DATA_DIR, 'blobs', '.temporary', 'half'), 'half')
  mkdirSync(join(env.DATA_DIR, 'blobs', account.org_id))
  writeFileSync(join(env.DATA_DIR, 'blobs', account.org_id, 'whole'), 'whole', { mode: 0o600 })
  mkdirSync(folder('elsewhere'))
  writeFileSync(join(folder('elsewhere'), 'far'), 'far', { mode: 0o600 })
  assert.equal(await commandLine(['backup', '--to', folder('copy')], env), { to: folder('copy') })
  const sessions = (await here.call('GET', '/sessions?limit=100', { token })).body['items'] as {
    active_run_id: string | null
  }[]
  assert.ok(
    sessions.some(({ active_run_id: id }) => id !== null),
    'runs were still under way when it was made',
  )
  await live.kill('SIGKILL')

  assert.equal(
    [`blobs/${account.org_id}/whole`, 'linked/far', 'blobs/.temporary', 'admin.sock'].map(name =>
      existsSync(join(folder('copy'), name)),
    ),
    [true, true, false, false],
  )
  for (const name of ['', 'platform.db', 'auth.secret', 'blobs', `blobs/${account.org_id}/whole`]) {
    const { mode } = statSync(join(folder('copy'), name))
    assert.is(mode & 0o077, 0, `${name} is for its owner alone`)
  }

  const restored = { ...env, DATA_DIR: folder('restored') }
  assert.equal(await commandLine(['restore', '--from', folder('copy')], restored), {
    from: folder('copy'),
    to: folder('restored'),
  })
  const second = await startProcess(restored)
  const there = client(second.base)
  assert.is(
    (await there.call('GET', '/balance', { token })).status,
    200,
    'an access token of before counts: the secret came along',
  )
  assert.is(
    (await there.call('POST', '/auth/login', { body: { email: 'ann@example.org', password } }))
      .status,
    200,
    'so does the password',
  )
  const again = await there.tokenOf(account.api_key)
  assert.equal(await there.events(again, ended), endedEvents, 'what had ended reads the same')
  for (const id of underWay) assert.match((await there.events(again, id)).at(-1)!, /^event: done$/m)
  const { body: balance } = await there.call('GET', '/balance', { token: again })
  assert.equal(balance, { balance: 91, held: 0, available: 91 }, 'each run was charged once')
  await second.kill('SIGTERM')
  const raw = new DatabaseSync(join(folder('restored'), 'platform.db'), { readOnly: true })
  assert.equal(
    {
      ...raw
        .prepare(
          `SELECT sum(doc ->> 'amount') AS balance, sum(doc ->> 'held') AS held FROM ` +
            `c_ledger WHERE doc ->> 'orgId' = ?`,
        )
        .get(account.org_id),
    },
    { balance: 91, held: 0 },
    'the ledger says the same',
  )
  raw.close()
})

test('a copy is refused where it would mix with something, or would not be whole', async () => {
  const live = await startProcess(env)
  const refused = async (
    args: string[],
    sentence: RegExp,
    settings: Record<string, string> = env,
  ) => {
    const { code, err } = await runMain(args, settings)
    assert.is(code, 1)
    assert.match(err, sentence)
    assert.not.match(err, /\n\s+at /)
  }
  await refused(['backup', '--to', folder('copy')], /^to: .*copy is not empty/)
  await refused(
    ['backup', '--to', join(env.DATA_DIR, 'inside')],
    /^to: must lie outside of DATA_DIR/,
  )
  await refused(['backup', '--to', join(env.DATA_DIR, 'auth.secret', 'x')], /^to: must lie outside/)
  await refused(
    ['backup', '--to', join(folder('copy'), 'auth.secret')],
    /^to: .* cannot be made a folder/,
  )
  await refused(['backup'], /^to: is required/)
  await refused(['restore', '--from', folder('copy')], /^DATA_DIR: a server runs on it/)
  await live.kill('SIGTERM')
  await refused(['restore', '--from', folder('copy')], /^DATA_DIR: .*live is not empty/)
  await refused(['restore', '--from', home], /^from: .* holds no backup/, {
    DATA_DIR: folder('fresh'),
  })
  await refused(['restore'], /^from: is required/, { DATA_DIR: folder('fresh') })
  await refused(['backup', '--to', folder('outside')], /EVENTLOG_URL keeps its data elsewhere/, {
    ...env,
    EVENTLOG_URL: `sqlite:${folder('events.db')}`,
  })
  await refused(['backup', '--to', folder('outside')], /saved by its own tools/, {
    DATA_DIR: folder('memory'),
    STORAGE_URL: 'memory:',
  })
  assert.equal(
    [
      existsSync(folder('fresh')),
      existsSync(folder('outside')),
      existsSync(join(env.DATA_DIR, 'inside')),
    ],
    [false, false, false],
  )
})

test('without a server a copy is made all the same', async () => {
  assert.equal(await commandLine(['backup', '--to', folder('cold')], env), { to: folder('cold') })
  assert.ok(readdirSync(folder('cold')).includes('auth.secret'))
})

test('what can be searched goes with the copy, and comes back with it', async () => {
  const scope = '01890000-0000-7000-8000-00000000000a'
  const search = sqliteSearch({ path: join(env.DATA_DIR, 'search.db') })
  await search.within(scope).define('notes', {})
  await search.within(scope).index('notes', [{ id: 'a', text: 'needles' }])
  await search.close()
  await commandLine(['backup', '--to', folder('searched')], env)
  assert.equal(
    readdirSync(folder('searched')).filter(name => name.startsWith('search.db')),
    ['search.db'],
  )
  await restore(folder('searched'), folder('restored-search'))
  const again = sqliteSearch({ path: join(folder('restored-search'), 'search.db') })
  assert.equal(
    (await again.within(scope).query('notes', { text: 'needle' })).hits.map(({ id }) => id),
    ['a'],
  )
  await again.close()
})

test('a copy that fails on its way leaves nothing that could be taken for one', async () => {
  const settings = readSettings(env)
  const storage = {
    async backup(path: string) {
      writeFileSync(path, 'half')
      throw new Error('the disk is full')
    },
  } as unknown as StorageEngine
  await backUp(settings, storage, {} as SearchEngine, folder('half')).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /the disk is full/),
  )
  assert.equal(readdirSync(folder('half')), [])
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
