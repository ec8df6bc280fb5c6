// Runs a port's kit against an adapter by its URL: what holds, what the adapter declares it does not do, what fails.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '#adapters/clock/manual.ts'
import { systemClock } from '#adapters/clock/system.ts'
import { fault } from '#contracts/faults.ts'
import type { Adapter, Opening } from '#ports/adapter.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { loadAdapter } from '../../kernel/adapters.ts'
import { blobsKit } from './blobs.ts'
import { eventlogKit } from './eventlog.ts'
import { modelsKit } from './models.ts'
import type { Test } from './runner.ts'
import { storageKit } from './storage.ts'

export type Checked = { readonly check: string; readonly result: 'holds' | 'unsupported' | 'fails'; readonly detail: string }
export type Report = { readonly ok: boolean; readonly holds: number; readonly unsupported: number; readonly fails: number; readonly checks: readonly Checked[] }
/** A check that takes longer has failed, in milliseconds. */
const checkMsMax = 60_000

type Parts = { readonly adapter: Adapter; readonly fresh: () => string; readonly folder: string; readonly env: Readonly<Record<string, string | undefined>> }
/** Registers the checks; answers what is not asked of this adapter, and why. */
type Kits = Readonly<Record<string, (test: Test, parts: Parts) => void | Promise<readonly { check: string; why: string }[]>>>

const opened = async <T>({ adapter, folder, env }: Parts, url: string, clock: Clock): Promise<T> => {
  const opening: Opening = { url: new URL(url), dataDir: folder, clock, log: () => undefined, secret: name => env[name], engine: () => undefined as never }
  return (await adapter.open(opening)) as T
}
const kits: Kits = {
  storage: (test, parts) => storageKit(test, 'storage', { survives: !parts.adapter.fleeting, place: async () => { const url = parts.fresh(), clock = manualClock(); return { clock, open: () => opened<StorageEngine>(parts, url, clock) } } }),
  eventlog: (test, parts) => eventlogKit(test, 'eventlog', { survives: !parts.adapter.fleeting, place: async () => { const url = parts.fresh(); return { async open() { const log = await opened<EventlogEngine>(parts, url, systemClock()); return { log, close: () => log.close() } } } } }),
  blobs: (test, parts) => blobsKit(test, 'blobs', { survives: !parts.adapter.fleeting, place: async () => { const url = parts.fresh(); return { open: () => opened<BlobsEngine>(parts, url, systemClock()) } } }),
  models: async (test, parts) => {
    const provider = await opened<ModelProvider>(parts, parts.fresh(), systemClock()), supports = (await provider.catalogue()).find(({ isDefault }) => isDefault)?.supports
    await provider.close()
    modelsKit(test, 'models', { open: () => opened<ModelProvider>(parts, parts.fresh(), systemClock()), long: 'Tell me a long story of about five hundred words.', ...(supports?.tools ? { tool: 'Call the tool add with the argument a = 1. [[tool=add {"a":1}]]' } : {}) })
    return Object.entries(supports ?? {}).filter(([, does]) => !does).map(([name]) => ({ check: `models: ${name}`, why: 'its default model declares that it does not' }))
  },
}
export const checkable = Object.keys(kits)

/** `url` holds `{n}` where each check needs a place of its own (`couch://host/kit_{n}`); an adapter that keeps nothing needs none. INVALID_FIELD names `port` or `url`. */
export async function checkAdapter({ port, url, folders, env, told = () => undefined }: { port: string; url: string; folders: readonly string[]; env: Parts['env']; told?: (checked: Checked) => void }): Promise<Report> {
  const kit = kits[port]
  if (!kit) throw fault('INVALID_FIELD', { field: 'port', why: `is none that can be checked; there are ${checkable.join(', ')}` })
  const { adapter } = await loadAdapter(port, 'url', url.replaceAll('{n}', '0'), folders)
  if (!adapter.fleeting && port !== 'models' && !url.includes('{n}')) throw fault('INVALID_FIELD', { field: 'url', why: 'names one place for all checks; write {n} where each has its own' })
  const folder = mkdtempSync(join(tmpdir(), 'agent-platform-check-')), run = systemClock().id().slice(-8), tests: { name: string; run: () => void | Promise<void> }[] = []
  let count = 0
  const unasked = await kit((name, body) => void tests.push({ name, run: body }), { adapter, folder, env, fresh: () => url.replaceAll('{n}', `${run}${count++}`) })
  const checks: Checked[] = []
  const note = (checked: Checked) => {
    checks.push(checked)
    told(checked)
  }
  try {
    for (const { name, run: body } of tests) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error(`it took longer than ${checkMsMax} ms`)), checkMsMax) })
      await Promise.race([Promise.resolve().then(body), late]).then(() => note({ check: name, result: 'holds', detail: '' }), (error: Error) => note({ check: name, result: 'fails', detail: error.message.split('\n', 1)[0]! })).finally(() => clearTimeout(timer))
    }
    for (const { check, why } of unasked ?? []) note({ check, result: 'unsupported', detail: why })
    if (port === 'blobs') note({ check: 'blobs: a full store refuses and stays whole', result: 'unsupported', detail: 'a full store cannot be made by a URL' })
    if (adapter.fleeting && port !== 'models') note({ check: `${port}: what was durable is there after opening again`, result: 'unsupported', detail: 'the adapter declares that what it keeps ends with the process' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const of = (result: Checked['result']) => checks.filter(one => one.result === result).length
  return { ok: of('fails') === 0, holds: of('holds'), unsupported: of('unsupported'), fails: of('fails'), checks }
}
