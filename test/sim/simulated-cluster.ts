// Simulated processes that share one disk, which die and come back, and what clients see of them.
import { ledgerOn } from '#adapters/billing/ledger.ts'
import type { Caller } from '#contracts/contract.ts'
import { hasCode } from '#contracts/faults.ts'
import type { Role } from '#kernel'
import type { LoggedEvent } from '#ports/eventlog.ts'
import type { Instance } from '../../kernel/loading/instance.ts'
import { Runs, Sessions, textStreamOf, type Run } from '../../plugins/runs/collections.ts'
import { createWorld, gone, type Choose, type Process } from '../support/sim.ts'
import { createDisk } from './disk.ts'
import type { Behaviour, Heard, simModel } from './model.ts'
import { configOf, createStart, leaseMs, type Services } from './simulated-process.ts'
import type { Effects } from './tools.ts'

export const caller: Caller = {
  userId: '00000000-0000-7000-8000-0000000000aa',
  orgId: '00000000-0000-7000-8000-0000000000bb',
  role: 'owner',
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
  const effects: Effects = { once: [], keyed: [], none: 0, deaths: 0 }
  const living = new Map<Process, Services>()
  const roles = new Map<Process, Role>()
  const instances = new Map<Process, Instance>()
  const logged: string[] = []
  const heard: Heard[] = []

  const start = createStart({
    world,
    disk,
    config: configOf(env),
    behave,
    supports,
    loses,
    effects,
    logged,
    heard,
  })
  const main =
    (role: Role) =>
    (process: Process): Promise<void> =>
      start(process, role, (instance, services) => {
        instances.set(process, instance)
        roles.set(process, role)
        if (role !== 'worker') living.set(process, services())
      })
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
