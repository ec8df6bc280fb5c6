// The real run plugin in simulated processes: the kernel's own instance of it, on in-memory ports
// that all processes share.
import { ledgerOn } from '#adapters/billing/ledger.ts'
import { noTraces } from '#adapters/traces/off.ts'
import type { Caller } from '#contracts/contract.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import { Host, Broadcast, type Broadcasting, type Role } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Token } from '#ports/token.ts'
import { createInstance, type Instance } from '../../kernel/loading/instance.ts'
import { readConfig } from '../../kernel/settings/settings.ts'
import { scopedPort } from '../../kernel/scoped-ports/face.ts'
import { builtIn } from '../../plugins/runs/agents.ts'
import { Agents, Tools } from '../../plugins/runs/api.ts'
import { Runs, Sessions, textStreamOf, type Run } from '../../plugins/runs/collections.ts'
import type { Steps } from '../../kernel/loading/steps.ts'
import runsPlugin from '../../plugins/runs/plugin.ts'
import type { RunService } from '../../plugins/runs/runs.ts'
import type { SessionService } from '../../plugins/runs/sessions/sessions.ts'
import { createDisk, reads, writes } from './disk.ts'
import { createWorld, gone, seenBy, type Choose, type Process } from '../support/sim.ts'
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
function configOf(env: Readonly<Record<string, string>>) {
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

export const caller: Caller = {
  userId: '00000000-0000-7000-8000-0000000000aa',
  orgId: '00000000-0000-7000-8000-0000000000bb',
  role: 'owner',
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

/**
 * `drivers`: two processes that do everything. `machine`: one, whose unsynced writes are lost when
 * it dies. `roles`: one takes requests, another drives, and no word passes between them.
 */
export type Kind = 'drivers' | 'machine' | 'roles'
export type ClusterOptions = {
  readonly choose: Choose
  readonly behave: Behaviour
  readonly seed?: number
  readonly kind?: Kind
  readonly supports?: Parameters<typeof simModel>[0]['supports']
  readonly credits?: number
  readonly env?: Readonly<Record<string, string>>
  /** What an earlier world left. */
  readonly disk?: Awaited<ReturnType<typeof createDisk>>
}
export type SimulatedCluster = Awaited<ReturnType<typeof createSimulatedCluster>>

export async function createSimulatedCluster({
  choose,
  behave,
  seed = 1,
  kind = 'drivers',
  supports,
  credits = 1000,
  env = {},
  disk: given,
}: ClusterOptions) {
  const loses = kind === 'machine'
  const world = createWorld({ choose, stallMs: leaseMs * 3, skewMs: 1_800_000, seed })
  const disk = given ?? (await createDisk())
  const config = configOf(env)
  const effects: Effects = { once: [], keyed: [], none: 0, deaths: 0 }
  const living = new Map<Process, Services>()
  const roles = new Map<Process, Role>()
  const instances = new Map<Process, Instance>()
  const logged: string[] = []
  const heard: Heard[] = []

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

  const main =
    (role: Role) =>
    async (process: Process): Promise<void> => {
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
      instances.set(process, instance)
      roles.set(process, role)
      if (role !== 'worker')
        living.set(process, {
          runs: instance.service('runs') as RunService,
          sessions: instance.service('sessions') as SessionService,
          durable: () => storage.durable(),
        })
    }
  const boot = (role: Role = 'all') => world.spawn('p', main(role))
  let deaths = 0
  world.hooks.died = process => {
    if (!process.steady) deaths++
    living.delete(process)
    instances.delete(process)
    if (stopped || process.steady) return
    if (!loses) return void boot(roles.get(process))
    // What this machine had not synced is gone; then it comes back.
    const kept = choose('survive', disk.unsafe() + 1)
    world.spawn(
      'disk',
      async () => {
        await disk.lose(kept)
        if (!stopped) boot()
      },
      true,
    )
  }
  let stopped = false
  if (loses) boot()
  else
    for (const role of kind === 'roles' ? (['api', 'worker'] as const) : (['all', 'all'] as const))
      boot(role)

  const { storage: bankStorage } = disk.engines()
  const bank = world.spawn('bank', async () => {}, true)
  if (!given) {
    const ledger = await ledgerOn(
      {
        ...bankStorage,
        define: async () => {},
        insertMany: async (...args) =>
          (await disk.write({ port: 'storage', method: 'insertMany', args })) as {
            inserted: number
          },
      },
      bank.clock,
    )
    await ledger.credit(caller.orgId, { key: 'gift', amount: credits, reason: 'simulation' })
    await disk.sync()
  }

  return {
    world,
    disk,
    effects,
    logged,
    heard,
    /**
     * Lets a client act until it is done; what went wrong with the world itself, if anything did.
     */
    async act(client: (process: Process) => Promise<void>): Promise<string | undefined> {
      let over = false
      world.spawn(
        'client',
        async process => {
          await client(process)
          over = stopped = true
          for (const one of world.processes) if (one.alive) world.kill(one)
        },
        true,
      )
      // The disk syncs by itself, as a group commit does.
      if (loses)
        world.spawn(
          'syncer',
          async process => {
            while (!over) {
              await process.clock.sleep(7)
              await world.call(process, 'sync', () => disk.sync())
            }
          },
          true,
        )
      const ended = await world.run(() => over)
      if (world.broken())
        return `the world broke: ${String((world.broken() as Error).stack ?? world.broken())}`
      return ended && over ? undefined : 'it never came to an end'
    },
    /** Waits until every run is closed, which comes a moment after its terminal event. */
    async closed(client: Process): Promise<void> {
      while (
        (await disk.engines().storage.find(Runs, { limit: 1000 })).items.some(
          ({ phase }) => phase !== 'closed',
        )
      )
        await client.clock.sleep(50)
    },
    /**
     * Takes the last records from a run's log and lets it stand as driven; the whole log that it
     * had.
     */
    async reopen({ id, sessionId }: Run, withheld: number): Promise<LoggedEvent[]> {
      const { storage, eventlog } = disk.engines()
      const stream = `${caller.orgId}/run:${id}`
      const log = await eventlog.read(stream, { limit: 5000 })
      await eventlog.remove(stream)
      await eventlog.append(
        stream,
        log
          .slice(0, log.length - withheld)
          .map(({ type, data, hidden }) => ({ type, data, ...(hidden ? { hidden } : {}) })),
      )
      await storage.update(Runs, id, { set: { phase: 'placed', status: 'running', due: 0 } })
      await storage.update(Sessions, sessionId, { set: { active: id } })
      return log
    },
    /**
     * Asks one of the living processes, as a client does: a process that dies in between, or does
     * not answer in time, is no answer.
     */
    async ask<T>(client: Process, act: (services: Services) => Promise<T>): Promise<T> {
      for (;;) {
        const processes = [...living.keys()]
        if (processes.length > 0) {
          const process = processes[choose('pick', processes.length)]!
          const services = living.get(process)!
          const answer = act(services).then(async value => {
            await services.durable()
            return { value }
          })
          const late = client.clock.sleep(leaseMs).then(() => undefined)
          const got = await Promise.race([answer, process.died, late]).catch((error: unknown) => {
            if (error === gone || hasCode(error, 'STOPPING')) return undefined
            throw error
          })
          answer.catch(() => undefined)
          if (got) return got.value
        }
        await client.clock.sleep(20)
      }
    },
    /** Stops a process in good order, and starts another. */
    async drain(client: Process): Promise<void> {
      const [process, instance] = [...instances][choose('pick', instances.size)] ?? []
      if (!process || !instance) return
      living.delete(process)
      await Promise.race([
        instance.retire(100),
        process.died.catch(() => undefined),
        client.clock.sleep(leaseMs * 6),
      ])
      if (process.alive) {
        instances.delete(process)
        process.alive = false
        if (!stopped) boot(roles.get(process))
      }
    },
    deaths: () => deaths,
    /** As it is kept, whole. */
    answer: async ({ id, answer, long = [] }: Run): Promise<string | undefined> => {
      if (!long.includes('answer')) return answer
      const kept = await disk
        .engines()
        .eventlog.read(`${caller.orgId}/${textStreamOf(id, 'answer')}`, { limit: 5000 })
      return kept.map(({ data }) => (data as { text: string }).text).join('')
    },
    runs: async () => (await disk.engines().storage.find(Runs, { limit: 1000 })).items,
    sessions: async () => (await disk.engines().storage.find(Sessions, { limit: 1000 })).items,
    log: (runId: string) =>
      disk.engines().eventlog.read(`${caller.orgId}/run:${runId}`, { limit: 5000 }),
    /** How much of a stream a client may see. */
    visible: async (runId: string) => {
      const all = await disk
        .engines()
        .eventlog.read(`${caller.orgId}/run:${runId}`, { limit: 5000 })
      return loses ? all.filter(({ seq }) => seq <= disk.head(`${caller.orgId}/run:${runId}`)) : all
    },
    ledger: async () =>
      (await ledgerOn(disk.engines().storage, {} as never)).entries(caller.orgId, { limit: 1000 }),
  }
}
