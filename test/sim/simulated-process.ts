// One simulated process: the kernel's own instance of the real run plugin, on in-memory ports that
// all processes share.
import { ledgerOn } from '#adapters/billing/ledger.ts'
import { noTraces } from '#adapters/traces/off.ts'
import { fault } from '#contracts/faults.ts'
import { Host, Broadcast, type Broadcasting, type Role } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Token } from '#ports/token.ts'
import { createInstance, type Instance } from '../../kernel/loading/instance.ts'
import type { Steps } from '../../kernel/loading/steps.ts'
import { scopedPort } from '../../kernel/scoped-ports/face.ts'
import { readConfig } from '../../kernel/settings/settings.ts'
import { builtIn } from '../../plugins/runs/agents.ts'
import { Agents, Tools } from '../../plugins/runs/api.ts'
import runsPlugin from '../../plugins/runs/plugin.ts'
import type { RunService } from '../../plugins/runs/runs.ts'
import type { SessionService } from '../../plugins/runs/sessions/sessions.ts'
import { seenBy, type createWorld, type Process } from '../support/sim.ts'
import { reads, writes, type createDisk } from './disk.ts'
import { simModel, type Behaviour, type Heard } from './model.ts'
import { simTools, type Effects } from './tools.ts'

export const leaseMs = 600,
  sweepMs = 100
const usual = {
  RUNS_LEASE_MS: String(leaseMs),
  RUNS_SWEEP_MS: String(sweepMs),
  RUNS_QUESTION_MS: '36000000',
  RUNS_STALL_MS: '100000',
  RUNS_TRIES_MAX: '3',
  RUNS_TAKES_MAX: '40',
  RUNS_DEATHS_MAX: '40',
  RUNS_EXCERPT_BYTES_MAX: '256',
}
/** By its settings: thousands of worlds have the same. */
const configs = new Map<string, ReturnType<typeof readConfig>>()
export function configOf(env: Readonly<Record<string, string>>) {
  const key = JSON.stringify(env)
  const known = configs.get(key) ?? readConfig(runsPlugin, { ...usual, ...env })
  configs.set(key, known)
  return known
}
/** Bytes that one append takes: small, so that what is large is seen in small worlds. */
const appendBytesMax = 2500
/** Bytes of what is written to a document at a time. */
const changeBytesMax = 2000
/** Every process registers its own, and nobody reads them. */
const metrics = { registerMetric() {} }

/** No hint arrives: whatever is found is found by the sweep. */
const silentPeers: Broadcasting = { publish() {}, subscribe: () => () => undefined }
const silentQueue = { enqueue: async () => '' }
/** An index that takes everything, and is never asked. */
const silentSearch = {
  within: () => ({
    define: async () => undefined,
    index: async () => ({ indexed: 0, errors: [] }),
    remove: async () => 0,
  }),
}

/** Nothing that a simulated process loads is waited for by a clock. */
const unbounded: Steps = {
  within: async (_, work) => work(),
  undo: async work => void (await work()),
  stop() {},
}

export type Services = {
  readonly runs: RunService
  readonly sessions: SessionService
  readonly durable: () => Promise<void>
}

/** The event log with the small append. */
const bounded = (log: EventlogEngine): Partial<EventlogEngine> => ({
  limits: { ...log.limits, appendBytesMax },
  async append(stream, events, options) {
    if (JSON.stringify(events).length > appendBytesMax)
      throw fault('DOCUMENT_TOO_LARGE', { collection: 'the event log', max: appendBytesMax })
    return log.append(stream, events, options)
  },
})

/** The storage with small documents. */
const smallDocuments = (storage: StorageEngine): Partial<StorageEngine> => {
  const check = (collection: string, written: unknown) => {
    if (JSON.stringify(written).length > changeBytesMax)
      throw fault('DOCUMENT_TOO_LARGE', { collection, max: changeBytesMax })
  }
  return {
    async insert(collection, doc) {
      check(collection.name, doc)
      return storage.insert(collection, doc)
    },
    async update(collection, id, change, options) {
      check(collection.name, change)
      return storage.update(collection, id, change, options)
    },
  }
}

type Deps = {
  readonly world: ReturnType<typeof createWorld>
  readonly disk: Awaited<ReturnType<typeof createDisk>>
  readonly config: ReturnType<typeof readConfig>
  readonly behave: Behaviour
  readonly supports: Parameters<typeof simModel>[0]['supports']
  /** What this process has not synced is lost when it dies. */
  readonly loses: boolean
  readonly effects: Effects
  /** What is written here is told when the world has ended. */
  readonly logged: string[]
  readonly heard: Heard[]
}

export function createStart(deps: Deps) {
  const { world, disk, config, behave, supports, loses, effects, logged, heard } = deps
  const face = <T extends object>(process: Process, port: 'storage' | 'eventlog'): T => {
    const live = new Proxy(
      {},
      {
        get: (_, name) => (disk.engines()[port] as unknown as Record<PropertyKey, unknown>)[name],
        ownKeys: () => Reflect.ownKeys(disk.engines()[port]),
        getOwnPropertyDescriptor: (_, name) => ({
          value: (disk.engines()[port] as unknown as Record<PropertyKey, unknown>)[name],
          configurable: true,
          enumerable: true,
        }),
      },
    )
    const all = [...writes[port], ...reads[port]] as never[]
    const seen = seenBy(world, process, port, live as never, all, (method, args, act) =>
      (writes[port] as readonly string[]).includes(method)
        ? disk.write({ port, method, args })
        : act(),
    )
    const small =
      port === 'eventlog' ? bounded(seen as EventlogEngine) : smallDocuments(seen as StorageEngine)
    return {
      ...(seen as object),
      ...small,
      exclusive: loses,
      ping: async () => {},
      close: async () => {},
      epoch: () => 0,
      durable: () => world.call(process, `${port}.durable`, () => disk.sync()),
    } as T
  }

  /** `started`: called in the moment in which the instance serves. */
  return async (
    process: Process,
    role: Role,
    started: (instance: Instance, services: () => Services) => void,
  ): Promise<void> => {
    const storage = face<StorageEngine>(process, 'storage')
    const eventlog = face<EventlogEngine>(process, 'eventlog')
    const log = (level: string, event: string, fields?: object) => {
      if (level === 'error')
        logged.push(
          `${event} ${String((fields as { error?: Error } | undefined)?.error?.stack ?? '')}`,
        )
    }
    const billing: Ledger = await ledgerOn({ ...storage, define: async () => {} }, process.clock)
    const tools = simTools(world, process, effects)
    const ports: Record<string, unknown> = {
      'port:storage': storage,
      'port:eventlog': eventlog,
      'port:billing': billing,
      'port:clock': process.clock,
      'port:models': simModel({ hear: one => heard.push(one), world, process, behave, supports }),
      'port:blobs': {},
      'port:queue': silentQueue,
      'port:search': silentSearch,
      'port:traces': noTraces,
      [Broadcast.id]: silentPeers,
      [Host.id]: { processId: process.name, role, metrics, previousDrained: async () => {} },
    }
    const provided = (token: Token) =>
      token.id === Agents.id
        ? () => builtIn
        : token.id === Tools.id
          ? () => tools
          : token.kind === 'port'
            ? token.id in ports
              ? scopedPort(token.id, ports[token.id], runsPlugin)
              : undefined
            : token.kind === 'point'
              ? () => []
              : { removeOfSession: async () => {} }
    const instance = await createInstance({
      plugin: runsPlugin,
      generation: 1,
      config,
      rates: {},
      log: log as never,
      clock: process.clock,
      steps: unbounded,
      given: provided,
    })
    started(instance, () => ({
      runs: instance.service('runs') as RunService,
      sessions: instance.service('sessions') as SessionService,
      durable: () => storage.durable(),
    }))
  }
}
