// Opens the adapter of each port, and closes all of them. Ports that others use are opened first.
import { chmodSync, mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Metric } from 'prom-client'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Adapter, Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import type { Durable, Lifecycle } from '#ports/token.ts'
import { chosenFor, foldersOf, loadAdapter, ports, type PortName } from './adapters.ts'
import { valueIn, type Environment, type Settings } from './settings/settings.ts'
import { createAdapterMetrics } from './telemetry/adapter-metrics.ts'

export type Engines = {
  engine<T>(name: string): T
  readonly entries: () => readonly (readonly [name: string, engine: Partial<Lifecycle & Durable>])[]
  /**
   * Resolves when everything applied so far, on every port, is on disk. Undefined when nothing is
   * pending.
   */
  durable(): Promise<unknown>
  /** Changes when writes that had been applied were lost before they were on disk. */
  epoch(): number
  /** Metrics of the adapters' calls, and of the queue's jobs with these names. */
  metrics(jobs: () => readonly string[]): readonly Metric[]
  close(): Promise<void>
}

/** Ports without metrics: called at every step, or by the server itself. */
const unwatched = new Set(['clock', 'traces', 'http'])

/** Names the setting in an error about an option of its URL. */
function named(error: unknown, setting: string, { options = {} }: Adapter): unknown {
  if (!hasCode(error, 'INVALID_FIELD') || !Object.hasOwn(options, String(error.values['field'])))
    return error
  return fault(
    'INVALID_FIELD',
    { ...error.values, field: `${setting} (${error.values['field']})` },
    { cause: error },
  )
}

/** Makes DATA_DIR private: it holds secrets and customers' data, so no other user may read it. */
function prepareDataDir(dataDir: string): string {
  const path = resolve(dataDir)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chmodSync(path, 0o700)
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      {
        field: 'DATA_DIR',
        why: `${path} cannot be made a private folder (${(cause as NodeJS.ErrnoException).code})`,
      },
      { cause },
    )
  }
  return path
}

export async function bindAdapters({
  env,
  settings,
  log,
  only = ports,
  given = {},
}: {
  env: Environment
  settings: Settings
  log: Log
  only?: readonly PortName[]
  given?: Readonly<Record<string, unknown>>
}): Promise<Engines> {
  const dataDir = prepareDataDir(settings.DATA_DIR)
  const bound = new Map<string, Partial<Lifecycle & Durable>>(
    Object.entries(given as Record<string, Lifecycle>),
  )
  const engine = <T>(name: string): T => {
    if (!bound.has(name)) throw new Error(`The port ${name} is not bound.`)
    return bound.get(name) as T
  }
  const close = async () => {
    for (const [name, part] of [...bound].reverse())
      await part
        .close?.()
        .catch((error: unknown) => log('error', 'adapter.close', { port: name, error }))
  }
  const open = async (name: PortName) => {
    if (bound.has(name)) return
    const folders = foldersOf(settings)
    const { setting, value } = chosenFor(name, settings, folders)
    const { adapter, url } = await loadAdapter(name, setting, value, folders)
    for (const need of adapter.needs ?? []) await open(need as PortName)
    const clock = bound.get('clock') as Clock | undefined
    const opening = adapter
      .open({
        url,
        dataDir,
        clock: clock as Clock,
        log: (level, event, fields) => log(level, event, { ...fields, port: name }),
        secret: wanted => valueIn(env, wanted),
        engine,
      })
      .catch((error: unknown) => Promise.reject(named(error, setting, adapter)))
    bound.set(name, (await opening) as Partial<Lifecycle & Durable>)
  }
  try {
    for (const name of only) await open(name)
  } catch (error) {
    await close()
    throw error
  }
  // Adapters call each other directly. All other calls pass the metrics wrapper.
  const meter = createAdapterMetrics(engine<Clock>('clock'))
  const faces = new Map(
    [...bound].map(
      ([name, part]) => [name, unwatched.has(name) ? part : meter.watch(name, part)] as const,
    ),
  )
  const syncing = [...faces.values()].filter(part => part.durable)
  return {
    engine: <T>(name: string) => (faces.get(name) ?? engine(name)) as T,
    close,
    entries: () => [...faces],
    metrics: jobs => meter.metrics(faces.get('queue') as unknown as Queue, jobs),
    epoch: () => syncing.reduce((sum, part) => sum + (part.epoch?.() ?? 0), 0),
    durable: () =>
      syncing.length === 1
        ? syncing[0]!.durable!()
        : Promise.all(syncing.map(part => part.durable!())),
  }
}
