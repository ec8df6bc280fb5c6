// One embedded installation copied into another: what arrives, what is refused, and what a kill in
// the middle does.
import { DatabaseSync } from 'node:sqlite'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  answersOf,
  copy,
  makeInstallation,
  type CopyAnswer,
} from '../../support/installation/installation.ts'
import { endProcesses, runMain, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-copy-'))
const place = (name: string) => join(home, name)
const env = { DATA_DIR: place('live') }
const url = (name: string) => `sqlite://${place(name)}.db`
const to = (name: string) => [
  '--from',
  'sqlite:',
  '--to',
  url(name),
  '--blobs_to',
  `file:${place(`${name}-blobs`)}`,
]
const serving = (name: string) => ({
  ...env,
  STORAGE_URL: url(name),
  BLOBS_URL: `file:${place(`${name}-blobs`)}`,
})
const digests = ({ compared }: CopyAnswer) =>
  compared.map(({ what, name, source, source_sha256 }) => [what, name, source, source_sha256])
const targets = ({ compared }: CopyAnswer) =>
  compared.map(({ what, name, target, target_sha256 }) => [what, name, target, target_sha256])
const refused = async (
  args: readonly string[],
  sentence: RegExp,
  settings: Readonly<Record<string, string>> = env,
) => {
  const { code, answer } = await copy(args, settings)
  assert.is(code, 1)
  assert.match(answer.error ?? '', sentence)
}

const made = await makeInstallation(env, 3000)
const before = await answersOf(env, made)
let whole: CopyAnswer

test('a copy holds everything, proves it by digests, and answers as the original', async () => {
  const { code, answer, err } = await copy(to('one'), env)
  assert.is(code, 0, `${err} ${JSON.stringify(answer.compared?.filter(({ same }) => !same))}`)
  assert.equal(
    [answer.ok, answer.resumed, answer.compared.every(({ same }) => same)],
    [true, false, true],
  )
  whole = answer
  const count = (name: string) =>
    answer.compared.find(one => one.name === name || (name === one.what && one.name === ''))!.target
  assert.equal([count('ballast'), count('runs'), count('blobs')], [3000, 5, 2])
  assert.ok(count('ledger') >= 6 && count('events') > 5000)
  assert.match(err, /No process may serve/)
  assert.match(err, /copied the documents \(\d+ documents/)
  assert.equal(before, await answersOf(serving('one'), made))
  const frames = (before as { events: string[][] }).events
  assert.ok(
    frames[0]!.some(frame => frame.includes('event: gone')),
    'one of the streams was trimmed',
  )
  assert.ok(frames[1]!.length < frames[2]!.length, 'one was compacted')
  // Indexes, expiry and the seqs of odd streams lie there as they did.
  const [a, b] = [place('live/platform'), place('one')].map(
    path => new DatabaseSync(`${path}.db`, { readOnly: true }),
  ) as [DatabaseSync, DatabaseSync]
  for (const sql of [
    `SELECT name, sql FROM sqlite_schema WHERE name LIKE '%ballast%' ORDER BY name`,
    `SELECT spec FROM collections WHERE name IN ('ballast', 'runs', 'jobs') ORDER BY name`,
    `SELECT * FROM trims WHERE stream LIKE 'ballast%' ORDER BY stream`,
  ])
    assert.equal(
      b
        .prepare(sql)
        .all()
        .map(row => ({ ...row })),
      a
        .prepare(sql)
        .all()
        .map(row => ({ ...row })),
      sql,
    )
  for (const database of [a, b]) database.close()
})

test('a copy killed again and again is no installation, goes on, and ends whole', async () => {
  for (const [at, killed] of [
    [/No process/, 350],
    [/copied the documents/, 0],
  ].entries() as ArrayIterator<[number, [RegExp, number]]>) {
    const { code, answer } = await copy(to('two'), env, { line: killed[0], ms: killed[1] })
    assert.equal([code, answer], [null, {}], `it was killed in the middle, for the ${at + 1}. time`)
    if (at === 0) continue
    await startProcess(serving('two')).then(
      () => assert.unreachable(),
      (error: Error) =>
        assert.match(
          error.message,
          'The storage is not available: it is an unfinished copy of storage sqlite:, ' +
            'eventlog sqlite:, blobs file:',
        ),
    )
  }
  const { code, answer } = await copy(to('two'), env)
  assert.equal(
    [code, answer.ok, answer.resumed],
    [0, true, true],
    JSON.stringify(answer.compared?.filter(({ same }) => !same)),
  )
  assert.equal(
    targets(answer).filter(([, name]) => name === 'ballast' || name === 'ledger'),
    targets(whole).filter(([, name]) => name === 'ballast' || name === 'ledger'),
  )
  assert.equal(digests(answer), targets(answer))
  assert.equal(before, await answersOf(serving('two'), made))
})

test('what was changed in the target before it was verified is found', async () => {
  assert.is((await copy(to('three'), env, { line: /copied the blobs/ })).code, null)
  const database = new DatabaseSync(`${place('three')}.db`)
  database.exec(
    `UPDATE c_ballast SET doc = replace(doc, 'xxx', 'xyx') WHERE id = 'b0000100'; DELETE ` +
      `FROM c_runs WHERE id = '${made.keyed}'`,
  )
  database
    .prepare(`UPDATE segments SET body = replace(body, 'yyy', 'yzy') WHERE stream = 'ballast/7'`)
    .run()
  database.close()
  const [org] = readdirSync(place('three-blobs')).filter(name => !name.startsWith('.'))
  const [folder] = readdirSync(join(place('three-blobs'), org!))
  const [hash] = readdirSync(join(place('three-blobs'), org!, folder!))
  writeFileSync(join(place('three-blobs'), org!, folder!, hash!), 'x', { flag: 'r+' })
  const { code, answer } = await copy(to('three'), env)
  assert.equal(
    [
      code,
      answer.ok,
      answer.compared.filter(({ same }) => !same).map(({ what, name }) => `${what} ${name}`),
    ],
    [1, false, ['documents ballast', 'documents runs', 'events ', 'blobs ']],
  )
  assert.match(
    answer.why!,
    /^Source and target differ: documents of ballast, documents of runs, events, blobs\./,
  )
})

test('a target that holds something, and a source with a server on it, are refused', async () => {
  const server = await startProcess(env)
  await refused(to('six'), /another server has it open/)
  await server.kill('SIGTERM')
  assert.not(existsSync(place('six-blobs')))
  await refused(to('one'), /^to: is not empty: it holds documents of/)
  await refused(['--from', 'sqlite:', '--to', 'sqlite:'], /^to: is where it is copied from/)
  assert.match(
    (await runMain(['storage', 'copy', '--from', 'sqlite:'], env)).err,
    /^to: is required/,
  )
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
