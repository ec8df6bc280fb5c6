// Ids and unique keys are an organisation's own matter; what is declared global is not.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { contract } from '#contracts/contract.ts'
import { definePlugin, isFault } from '#kernel'
import { collection, Storage, type StorageEngine, type Where } from '#ports/storage.ts'
import { memoryStorage } from '../../adapters/storage/memory.ts'
import { defineCollection } from '../../kernel/scoped-ports/define.ts'
import { scopeStorage } from '../../kernel/scoped-ports/storage.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { endServers, startServer } from '../conformance/plugin/server.ts'

type Setting = { id: string; orgId: string; slug?: string; code?: string; rank?: number }
const Settings = collection<Setting>({
  name: 'settings',
  scope: 'tenant',
  unique: [['slug']],
  globallyUnique: [['code']],
})
const Minted = collection<Setting>({
  name: 'minted',
  scope: 'tenant',
  global: true,
  unique: [['slug']],
})
const [mine, other] = [
  '00000000-0000-7000-8000-00000000000a',
  '00000000-0000-7000-8000-00000000000b',
]
const setting = (id: string, more: Partial<Setting> = {}) => ({ id, ...more }) as Setting

async function stores() {
  const engine: StorageEngine = memoryStorage({ now: Date.now } as never)
  for (const one of [Settings, Minted]) await defineCollection(engine, one as never)
  const storage = scopeStorage(engine, {
    name: 'noter',
    collections: [Settings, Minted] as never,
    system: ['to look'],
  })
  return {
    engine,
    ours: storage.tenant({ orgId: mine }),
    theirs: storage.tenant({ orgId: other }),
    all: storage.system('to look'),
  }
}
const refusal = (work: () => Promise<unknown>) =>
  Promise.resolve()
    .then(work)
    .then(
      () => 'allowed',
      (error: Error) =>
        isFault(error) ? `${error.code} ${String(error.values['fields'])}` : error.message,
    )

test('organisations may have equal ids and unique keys, and learn nothing of others', async () => {
  const { ours, theirs, all } = await stores()
  await ours.insert(Settings, setting('settings', { slug: 'home', rank: 1 }))
  await theirs.insert(Settings, setting('settings', { slug: 'home', rank: 2 }))
  assert.is(await refusal(() => ours.insert(Settings, setting('settings'))), 'DUPLICATE id')
  assert.is(
    await refusal(() => ours.insert(Settings, setting('b', { slug: 'home' }))),
    'DUPLICATE slug',
  )
  assert.equal(
    await ours
      .insertMany(Settings, [setting('c', { slug: 'c' }), setting('d', { slug: 'home' })])
      .then(({ inserted, error }) => [inserted, isFault(error) && error.values['fields']]),
    [1, 'slug'],
  )
  await theirs.insert(Settings, setting('b'))
  assert.is(
    await refusal(() => theirs.update(Settings, 'b', { set: { slug: 'home' } })),
    'DUPLICATE slug',
  )
  assert.equal(await ours.update(Settings, 'settings', { set: { rank: 5 } }), {
    id: 'settings',
    orgId: mine,
    slug: 'home',
    rank: 5,
  })
  assert.is((await theirs.get(Settings, 'settings'))!.rank, 2)
  assert.is(await ours.remove(Settings, 'settings'), true)
  assert.is((await theirs.get(Settings, 'settings'))!.rank, 2)
  assert.equal(
    (await all.find(Settings, { where: { slug: 'home' } })).items.map(({ id, orgId }) => [
      id,
      orgId,
    ]),
    [['settings', other]],
  )
})

test('ids in conditions, orders and pages are as their owner gave them', async () => {
  const { ours, theirs, all } = await stores()
  for (const id of ['a1', 'a2', 'b1', 'b2'])
    for (const store of [ours, theirs]) await store.insert(Settings, setting(id))
  const found = async (where: Where) =>
    (await ours.find(Settings, { where })).items.map(({ id }) => id)
  assert.equal(
    [
      await found({ id: 'a2' }),
      await found({ id: { in: ['a1', 'b2', 'x'] } }),
      await found({ id: { prefix: 'b' } }),
      await found({ id: { gt: 'a1', lte: 'b1' } }),
      await found({ id: { exists: true } }),
    ],
    [['a2'], ['a1', 'b2'], ['b1', 'b2'], ['a2', 'b1'], ['a1', 'a2', 'b1', 'b2']],
  )
  const first = await ours.find(Settings, { limit: 3, orderBy: ['id', 'desc'] })
  const second = await ours.find(Settings, {
    limit: 3,
    orderBy: ['id', 'desc'],
    after: first.next!,
  })
  assert.equal(
    [...first.items, ...second.items].map(({ id }) => id),
    ['b2', 'b1', 'a2', 'a1'],
  )
  assert.is(await ours.count(Settings, { id: { prefix: 'a' } }), 2)
  assert.is(await ours.removeMany(Settings, { id: 'a1' }), 1)
  assert.is(await theirs.count(Settings), 4)
  assert.match(
    await refusal(() => all.get(Settings, 'a2')),
    /An id of the collection settings lies within an organisation, and none is named/,
  )
  assert.equal((await all.find(Settings, { where: { id: 'a2', orgId: other } })).items, [
    { id: 'a2', orgId: other },
  ])
  assert.is(await all.remove(Settings, 'a2', { if: { orgId: other } }), true)
  assert.equal([await ours.count(Settings), await theirs.count(Settings)], [3, 3])
})

test('a collection is global only by its declaration, across organisations', async () => {
  const { engine, ours, theirs, all } = await stores()
  await ours.insert(Minted, setting('m', { slug: 's' }))
  assert.is(await refusal(() => theirs.insert(Minted, setting('m'))), 'DUPLICATE id')
  await theirs.insert(Minted, setting('n', { slug: 's' }))
  assert.is((await all.get(Minted, 'm'))!.orgId, mine)
  await ours.insert(Settings, setting('x', { code: 'c' }))
  assert.is(
    await refusal(() => theirs.insert(Settings, setting('x', { code: 'c' }))),
    'DUPLICATE code',
  )
  await theirs.insert({ ...Settings, global: true } as typeof Settings, setting('x'))
  assert.equal(
    (await engine.find(Settings, {})).items.map(({ id }) => id),
    [`@${mine}/x`, `@${other}/x`],
  )
})

test('a plugin serves documents from before, which the kernel places as it loads', async () => {
  const Memos = collection<Setting>({ name: 'memos', scope: 'tenant' })
  const rows = contract({
    'GET /memos': { summary: 'x', reply: t.Object({ id: t.String(), count: t.Integer() }) },
  })
  const memos = definePlugin({
    name: 'memos',
    version: '1.0.0',
    kernel: '^1.0.0',
    contract: rows,
    uses: { store: Storage },
    collections: [Memos],
    routes: {
      'GET /memos': async ({ store, caller }) => ({
        id: (await store.tenant(caller).get(Memos, 'mine'))?.id ?? '',
        count: await store.tenant(caller).count(Memos),
      }),
    },
  })
  const all = await loadPlugins()
  const server = await startServer({ plugins: all })
  const { token, org_id: orgId } = await server.account()
  const engine = server.engine<StorageEngine>('storage')
  await engine.define({ name: 'memos', scope: 'tenant' })
  await engine.insert(Memos, setting('mine', { orgId }))
  await engine.insert(Memos, setting('another', { orgId: other }))
  await server.kernel.applyPlugins([...all, memos])
  assert.equal((await server.call('GET', '/memos', { token })).body, { id: 'mine', count: 1 })
  await server.stop()
})

test.after(endServers)
test.run()
