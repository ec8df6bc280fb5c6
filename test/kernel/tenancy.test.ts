// The scoped faces of the ports: nothing is asked or written without an organisation.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { collection, type StorageEngine } from '#ports/storage.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import { scopeEventlog } from '../../kernel/scoped-ports/streams.ts'
import { scopeStorage } from '../../kernel/scoped-ports/storage.ts'
import { startServer } from '../conformance/plugin/server.ts'

type Note = { id: string; orgId: string; text: string }
const Notes = collection<Note>({ name: 'notes', scope: 'tenant', index: [['orgId', 'text']] })
const Codes = collection<{ id: string; code: string }>({ name: 'codes', scope: 'platform' })
const [mine, other] = [
  '00000000-0000-7000-8000-00000000000a',
  '00000000-0000-7000-8000-00000000000b',
]

const server = await startServer({ plugins: [] })
const engine = server.engine<StorageEngine>('storage')
await engine.define(Notes)
await engine.define(Codes)
const storage = scopeStorage(engine, {
  name: 'noter',
  collections: [Notes, Codes],
  system: ['sign-in'],
})
const ours = storage.tenant({ orgId: mine })
const theirs = storage.tenant({ orgId: other })
const refusal = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    return (error as Error).message
  }
  return 'allowed'
}

test('a document belongs to the organisation that wrote it, whatever it says', async () => {
  await ours.insert(Notes, { id: 'n1', text: 'hello' } as Note)
  assert.equal(await engine.get(Notes, `@${mine}/n1`), {
    id: `@${mine}/n1`,
    text: 'hello',
    orgId: mine,
  })
  assert.match(
    refusal(() => ours.insert(Notes, { id: 'n2', orgId: other, text: 'x' })),
    /another organisation/,
  )
})

test('another organisation can neither see, count, change nor remove it', async () => {
  assert.is(await theirs.get(Notes, 'n1'), undefined)
  assert.equal((await theirs.find(Notes)).items, [])
  assert.is(await theirs.count(Notes), 0)
  assert.is(await theirs.update(Notes, 'n1', { set: { text: 'stolen' } }), undefined)
  assert.is(await theirs.updateMany(Notes, { text: 'hello' }, { set: { text: 'stolen' } }), 0)
  assert.is(await theirs.remove(Notes, 'n1'), false)
  assert.is(await theirs.removeMany(Notes, {}), 0)
  assert.is((await ours.get(Notes, 'n1'))?.text, 'hello')
})

test('a filter or a change cannot name another organisation', () => {
  assert.match(
    refusal(() => ours.find(Notes, { where: { orgId: other } })),
    /another organisation/,
  )
  assert.match(
    refusal(() => ours.update(Notes, 'n1', { set: { orgId: other } })),
    /orgId never changes/,
  )
  assert.match(
    refusal(() => ours.update(Notes, 'n1', { unset: ['orgId'] })),
    /orgId never changes/,
  )
})

test('a missing organisation fails closed', () => {
  for (const scope of [undefined, {}, { orgId: '' }, { orgId: undefined }, { orgId: 'x' }])
    assert.match(
      refusal(() => storage.tenant(scope as { orgId: string })),
      /without an organisation/,
    )
})

test('looking across organisations needs a declared reason', () => {
  assert.match(
    refusal(() => storage.system('curiosity')),
    /noter does not declare why/,
  )
  assert.is(
    refusal(() => storage.system('sign-in')),
    'allowed',
  )
})

test('a plugin reaches its own collections only, and platform data never as a tenant', () => {
  const foreign = scopeStorage(engine, { name: 'stranger', collections: [] })
  assert.match(
    refusal(() => void foreign.tenant({ orgId: mine }).find(Notes)),
    /stranger does not declare the collection notes/,
  )
  assert.match(
    refusal(() => void ours.insert(Codes, { id: 'c', code: '1' })),
    /belongs to no organisation/,
  )
})

test('what belongs to a tenant is never written without one, even by the system', () => {
  assert.match(
    refusal(() => void storage.system('sign-in').insert(Notes, { id: 'n3', text: 'x' } as Note)),
    /without an organisation/,
  )
})

test('streams of two organisations share no name', async () => {
  const log = scopeEventlog(server.engine<EventlogEngine>('eventlog'), { name: 'noter' })
  await log.tenant({ orgId: mine }).append('run:1', [{ type: 'a', data: 1 }])
  assert.equal(await log.tenant({ orgId: other }).read('run:1'), [])
  assert.is((await log.tenant({ orgId: mine }).read('run:1')).length, 1)
})

test.after(() => server.stop())
test.run()
