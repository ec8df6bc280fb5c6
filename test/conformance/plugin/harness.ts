// For whoever writes a plugin: the real kernel with the real plugins on in-memory adapters, and
// what every plugin must keep.
import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Plugin } from '../../../kernel/plugin.ts'
import { loadPlugins, sourceAt } from '../../../kernel/loading/sources.ts'
import type { Environment } from '../../../kernel/settings/settings.ts'
import type { ResourceLimits } from '../../../kernel/kernel-ports.ts'
import type { Test } from '../runner.ts'
import { refsOf, sample, sampleQuery, wrongs } from './sample.ts'
import { startServer, type Account, type TestServer } from './server.ts'

/** A server with the plugin beside all others; `stop()` it. */
export const testPlugin = async (
  plugin: Plugin,
  { env = {}, given = {} }: { env?: Environment; given?: Readonly<Record<string, unknown>> } = {},
): Promise<TestServer> =>
  startServer({
    plugins: [...(await loadPlugins()).filter(({ name }) => name !== plugin.name), plugin],
    env,
    given,
  })

export type Conformance = {
  /** The plugin's folder, or the file with its default export. */
  readonly path: string
  /** In a thread within these bounds, as an operator may choose. */
  readonly isolated?: ResourceLimits
  /** Its settings, where it needs any. */
  readonly env?: Environment
  /** By kind of identifier (`ref('note')`): makes one that belongs to the account. */
  readonly fixtures?: Readonly<
    Record<string, (server: TestServer, account: Account) => Promise<string>>
  >
}
/** The client's own connections, which it keeps for a while; and what is over at the next turn. */
const passing = new Set(['TCPSocketWrap', 'Immediate'])
/** KiB of heap that a reload may keep. */
const reloadKibMax = 64
/**
 * Reloads under traffic, before the heap is measured, and while it is: a thread takes a third of a
 * second for each.
 */
const reloads = { process: [20, 10, 20], thread: [5, 3, 10] } as const
const unknownId = '00000000-0000-7000-8000-00000000dead'
const resources = () =>
  process
    .getActiveResourcesInfo()
    .filter(name => !passing.has(name))
    .sort()
/** What is there now and was not before. */
const beyond = (before: readonly string[]): string[] => {
  const left = [...before]
  return resources().filter(name => {
    const at = left.indexOf(name)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

async function heapKib(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let i = 0; i < 5; i++) {
    gc()
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  return process.memoryUsage().heapUsed / 1024
}

/** What every plugin keeps; `test` is the runner's: uvu's, node:test's, vitest's. */
export function pluginConformance(
  test: Test,
  { path, env = {}, fixtures = {}, isolated }: Conformance,
): void {
  const placed = isolated ? { isolated } : {}
  const [busy, first, more] = reloads[isolated ? 'thread' : 'process']
  const on = (title: string, run: (server: TestServer, name: string) => Promise<void>) =>
    test(title, async () => {
      const server = await startServer({
        env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000', ...env },
      })
      try {
        const { entry } = sourceAt(path)
        const served = server.pluginRegistry.list().find(({ source }) => source === entry)
        await run(server, (served ?? (await server.pluginRegistry.load(path, placed))).name)
      } finally {
        await server.stop()
      }
    })
  const rowsOf = (server: TestServer, name: string) =>
    server.kernel.host
      .operations()
      .filter(({ plugin }) => plugin === name)
      .map(({ key, path: at, operation }) => ({
        key,
        at,
        operation,
        method: key.slice(0, key.indexOf(' ')),
      }))
  const filled = (at: string, id = unknownId) => at.replace(/\{\w+\}/g, id)
  const closedTo = (auth: string | undefined) => (auth ?? 'user') === 'user'

  on('it loads; its contract and its handlers agree', async (server, name) => {
    assert.ok(server.kernel.host.plugins().some(one => one.name === name))
    assert.ok(
      (await server.kernel.host.health()).every(({ ok }) => ok),
      'it is healthy',
    )
  })
  on('nobody gets in without a token', async (server, name) => {
    for (const { key, at, method, operation } of rowsOf(server, name))
      if (operation.auth !== 'public')
        assert.equal(
          (
            await server.call(
              method,
              filled(at),
              operation.body ? { body: sample(operation.body) } : {},
            )
          ).status,
          401,
          key,
        )
  })
  on('what belongs to another organisation is unknown', async (server, name) => {
    const owner = await server.account()
    const stranger = await server.account()
    for (const { key, at, method, operation } of rowsOf(server, name))
      for (const { field, kind } of refsOf({ properties: operation.params ?? {} })) {
        const make = fixtures[kind]
        assert.ok(make, `a fixture for ${kind}, which ${key} names`)
        const id = await make(server, owner)
        const body = operation.body ? { body: sample(operation.body) } : {}
        assert.equal(
          (
            await server.call(method, at.replace(`{${field}}`, id), {
              token: stranger.token,
              ...body,
            })
          ).status,
          404,
          `${key} for another organisation`,
        )
        const mine = await server.call(method, at.replace(`{${field}}`, id), {
          token: owner.token,
          ...body,
        })
        assert.ok(
          mine.status < 300 || mine.status === 409,
          `${key} for its owner: ${mine.status} ${mine.text}`,
        )
      }
  })
  on('what is wrong is refused with 400, naming the field', async (server, name) => {
    const { token } = await server.account()
    for (const { key, at, method, operation } of rowsOf(server, name)) {
      if (!closedTo(operation.auth)) continue
      if (operation.body)
        for (const { why, value, field } of wrongs(operation.body)) {
          const { status, text } = await server.call(method, filled(at), { token, body: value })
          assert.equal(status, 400, `${key}, ${why}: ${text}`)
          assert.ok(text.includes(field), `${key}, ${why}: the answer names ${field}: ${text}`)
        }
      if (operation.query)
        assert.equal(
          (
            await server.call(
              method,
              `${filled(at)}${sampleQuery(operation.query) || '?x=1'}&nonsense=1`,
              { token, ...(operation.body ? { body: sample(operation.body) } : {}) },
            )
          ).status,
          400,
          `${key}, an unknown query`,
        )
    }
  })
  on('replies match the contract', async (server, name) => {
    const { token } = await server.account()
    for (const { key, at, method, operation } of rowsOf(server, name)) {
      if (operation.params || operation.reply === 'sse' || !closedTo(operation.auth)) continue
      // The server checks every reply against its schema here: another shape is a 500.
      const { status, text } = await server.call(method, at + sampleQuery(operation.query), {
        token,
        ...(operation.body ? { body: sample(operation.body) } : {}),
      })
      assert.ok(status < 500, `${key}: ${status} ${text}`)
    }
  })
  on('reloads under traffic drop nothing', async (server, name) => {
    const { token } = await server.account()
    const row = rowsOf(server, name).find(
      ({ method, operation }) => method === 'GET' && !operation.params && operation.reply !== 'sse',
    )
    if (!row) return
    let going = true
    let calls = 0
    const traffic = (async () => {
      while (going) {
        const { status, text } = await server.call(
          'GET',
          row.at + sampleQuery(row.operation.query),
          { token },
        )
        assert.ok(status < 500 && status !== 404, `${row.key}: ${status} ${text}`)
        calls++
      }
    })()
    for (let i = 0; i < busy; i++) await server.pluginRegistry.reload(name)
    going = false
    await traffic
    assert.ok(calls > 0)
  })
  on(
    `an unload leaves nothing; a reload keeps less than ${reloadKibMax} KiB`,
    async (server, name) => {
      await server.pluginRegistry.unload(name)
      const settled = async (what: string, expected: readonly string[]) => {
        for (let tries = 0; tries < 200 && beyond(expected).length > 0; tries++)
          await new Promise(resolve => setTimeout(resolve, 20))
        assert.deepEqual(beyond(expected), [], what)
      }
      const before = resources()
      await server.pluginRegistry.load(path, placed)
      const once = resources()
      for (let i = 0; i < first; i++) await server.pluginRegistry.reload(name)
      await settled('after the first reloads', once)
      const warm = await heapKib()
      for (let i = 0; i < more; i++) await server.pluginRegistry.reload(name)
      await settled('after more of them', once)
      const each = ((await heapKib()) - warm) / more
      assert.ok(each < reloadKibMax, `a reload keeps ${each.toFixed(1)} KiB`)
      await server.pluginRegistry.unload(name)
      await settled('after the unload', before)
    },
  )
}
