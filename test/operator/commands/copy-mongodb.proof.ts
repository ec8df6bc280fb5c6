// From the embedded database to the server that MONGODB_URL names and back: it ends where it began.
import { mkdtempSync, rmSync } from 'node:fs'
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
import { freshDatabase, mongoUrl } from '../../support/databases/mongodb.ts'
import { endProcesses, startProcess } from '../../support/process.ts'

const told = ({ compared }: CopyAnswer) =>
  compared.map(({ what, name, target, target_sha256 }) => [what, name, target, target_sha256])
const differing = ({ compared = [] }: CopyAnswer) =>
  JSON.stringify(compared.filter(({ same }) => !same))

if (mongoUrl === undefined)
  test.skip('storage copy: to MongoDB and back (MONGODB_URL is not set)', () => undefined)
else {
  const home = mkdtempSync(join(tmpdir(), 'agent-platform-copy-'))
  const place = (name: string) => join(home, name)
  const env = { DATA_DIR: place('live') }
  const { url, clean } = freshDatabase()
  const there = ['--from', 'sqlite:', '--to', url.href]
  const back = [
    '--from',
    url.href,
    '--to',
    `sqlite://${place('back.db')}`,
    '--blobs_to',
    `file:${place('back-blobs')}`,
    '--search_to',
    `sqlite://${place('back-search.db')}`,
  ]

  test('SQLite to MongoDB and back, killed on the way: equal digests and answers', async () => {
    const made = await makeInstallation(env, 600)
    const before = await answersOf(env, made)
    assert.is((await copy(there, env, { line: /copied the documents/ })).code, null)
    await startProcess({ ...env, STORAGE_URL: url.href }).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /it is an unfinished copy of storage sqlite:/),
    )
    const first = await copy(there, env)
    assert.equal(
      [first.code, first.answer.resumed, first.answer.ok],
      [0, true, true],
      `${first.err} ${differing(first.answer)}`,
    )
    assert.equal(
      first.answer.compared.filter(({ what }) => what === 'blobs').map(({ target }) => target),
      [2],
      'files go to GridFS, where a server on this storage looks for them',
    )
    const second = await copy(back, env)
    assert.equal(
      [second.code, second.answer.ok],
      [0, true],
      `${second.err} ${differing(second.answer)}`,
    )
    assert.equal(told(second.answer), told(first.answer))
    assert.equal(
      await answersOf(
        {
          ...env,
          STORAGE_URL: `sqlite://${place('back.db')}`,
          BLOBS_URL: `file:${place('back-blobs')}`,
          SEARCH_URL: `sqlite://${place('back-search.db')}`,
        },
        made,
      ),
      before,
    )
    assert.equal(
      await answersOf({ ...env, STORAGE_URL: url.href }, made),
      before,
      'the server in between answers the same',
    )
    assert.match((await copy(there, env)).answer.error ?? '', /^to: is not empty/)
  })

  test('a changed document is found in MongoDB, and an unknown collection is named', async () => {
    const other = freshDatabase()
    const args = ['--from', 'sqlite:', '--to', other.url.href]
    assert.is((await copy(args, env, { line: /copied the documents/ })).code, null)
    const { db, close } = await other.connect()
    await db.collection('c_users').updateOne({}, { $set: { email: 'eve@example.org' } })
    const { code, answer } = await copy(args, env)
    assert.equal(
      [code, answer.ok, answer.why?.split('.')[0]],
      [1, false, 'Source and target differ: documents of users'],
    )
    await db.collection<{ _id: string }>('_collections').deleteOne({ _id: 'sessions' })
    await db.collection<{ _id: string }>('c_storage_copies').deleteMany({})
    assert.match(
      (
        await copy(
          [
            '--from',
            other.url.href,
            '--to',
            `sqlite://${place('refused.db')}`,
            '--search_to',
            `sqlite://${place('refused-search.db')}`,
          ],
          env,
        )
      ).answer.error ?? '',
      /it does not say what sessions is/,
    )
    await close()
    await other.clean()
  })

  test.after(async () => {
    await endProcesses()
    await clean()
    rmSync(home, { recursive: true, force: true })
  })
}

test.run()
