// A server whose model is a scriptedModel: what tests of the run engine do with it again and again.
import { definePlugin, into } from '#kernel'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { RunStart } from '#contracts/runs.ts'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine, LoggedEvent, NewEvent } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { Agents, Tools, type Agent, type Tool } from '../../plugins/runs/api.ts'
import { Runs, Sessions, streamOf, type Run } from '../../plugins/runs/collections.ts'
import { scriptedModel, type Play } from './scripted-model.ts'
import {
  readEvents,
  startServer,
  type Account,
  type SseEvent,
} from '../conformance/plugin/server.ts'

export type Started = {
  readonly run_id: string
  readonly session_id: string
  readonly status: string
  readonly resumed: boolean
}
export type Engine = Awaited<ReturnType<typeof startEngine>>
type Options = {
  model?: Parameters<typeof scriptedModel>[1]
  env?: Record<string, string>
  tools?: readonly Tool[]
  agents?: readonly Agent[]
  given?: Readonly<Record<string, unknown>>
  credits?: number
  /** Somebody who is known already. */
  who?: Account
}

export const typesOf = (list: readonly { event: string }[]) => list.map(({ event }) => event)
export const dataOf = (list: readonly SseEvent[], type: string) =>
  list.filter(({ event }) => event === type).map(({ data }) => data)
export const saidIn = (list: readonly SseEvent[], type = 'token') =>
  dataOf(list, type)
    .map(({ text }) => text)
    .join('')

/** Waits for a condition that no event tells of; ten seconds without it are a failure. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** A stream that does not end fails its test instead of keeping it. */
async function inTime<T>(what: string, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`in vain: ${what}`)), 15_000)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/**
 * Engines that outlive a server, for a second one that takes over; no other process could be there,
 * or (`exclusive: false`) it could.
 */
export function lasting({ exclusive = true } = {}) {
  const storage = memoryStorage({ now: () => Date.now() } as Clock)
  const eventlog = memoryEventlog()
  const close = async () => undefined
  return {
    storage: { ...storage, exclusive, close } as StorageEngine,
    eventlog: { ...eventlog, close } as EventlogEngine,
  }
}

const living = new Set<() => Promise<void>>()
/** For `test.after`: a server that a failed test left behind would keep its file from ending. */
export async function endEngines(): Promise<void> {
  await Promise.all([...living].map(stop => stop()))
}

export async function startEngine(
  play: Play,
  {
    model,
    env = {},
    tools = [],
    agents = [],
    given = {},
    credits = 1000,
    who: known,
  }: Options = {},
) {
  const strings = scriptedModel(play, model)
  const additions = definePlugin({
    name: 'test-additions',
    version: '1.0.0',
    kernel: '^1.0.0',
    contributes: [
      ...tools.map(tool => into(Tools, () => tool)),
      ...agents.map(agent => into(Agents, () => agent)),
    ],
  })
  const server = await startServer({
    plugins: [...(await loadPlugins()), additions],
    given: { models: strings.provider, ...given },
    env: {
      LIMITS_RUNS_PER_SECOND: '10000',
      LIMITS_RUNS_BURST: '10000',
      RUNS_SWEEP_MS: '50',
      RUNS_LEASE_MS: '300',
      ...env,
    },
  })
  const who = known ?? (await server.account(credits))
  const storage = server.engine<StorageEngine>('storage')
  const eventlog = server.engine<EventlogEngine>('eventlog')
  const stop = async () => {
    living.delete(stop)
    await server.stop()
  }
  living.add(stop)
  const start = (message: string, more: Partial<RunStart> = {}, by = who) =>
    server.call('POST', '/chat', { token: by.token, body: { message, ...more } })
  const read = async (runId: string, isLast?: (event: SseEvent) => boolean, by = who) =>
    inTime(
      `the events of run ${runId}`,
      server.stream(by.token, runId).then(response => readEvents(response, isLast)),
    )
  const chat = async (...asked: Parameters<typeof start>): Promise<Started> => {
    const { status, body, text } = await start(...asked)
    if (status !== 200) throw new Error(text)
    return body as Started
  }
  return {
    ...server,
    stop,
    who,
    storage,
    eventlog,
    model: strings,
    start,
    chat,
    read,
    /** A whole run: what its readers saw. */
    answered: async (...asked: Parameters<typeof start>): Promise<SseEvent[]> =>
      read((await chat(...asked)).run_id, undefined, asked[2]),
    run: async (id: string): Promise<Run> => (await storage.get(Runs, id))!,
    closed: (id: string) =>
      until(`the end of run ${id}`, async () => (await storage.get(Runs, id))?.phase === 'closed'),
    /** Everything in a run's stream, the engine's own records too. */
    journal: ({ id, orgId }: Pick<Run, 'id' | 'orgId'>): Promise<LoggedEvent[]> =>
      eventlog.read(`${orgId}/${streamOf(id)}`),
    balance: async (by = who) =>
      (await server.call('GET', '/balance', { token: by.token })).body as {
        balance: number
        held: number
        available: number
      },
    gauge: async (name: string): Promise<number> =>
      Number(
        (await server.call('GET', '/metrics')).text
          .split('\n')
          .find(line => line.startsWith(`${name} `))
          ?.split(' ')[1],
      ),

    /**
     * A run as a process left it that died after these records: placed, its session and its credits
     * held, its lease nobody's.
     */
    async left(
      records: readonly NewEvent[],
      {
        request = {},
        ...change
      }: Partial<Omit<Run, 'request'>> & { request?: Partial<RunStart> } = {},
    ): Promise<Run> {
      const { price, contextTokens, outputTokensMax, supports, key } = (
        await strings.provider.catalogue()
      )[0]!
      const now = Date.now()
      const run: Run = {
        id: crypto.randomUUID(),
        orgId: who.org_id,
        userId: who.user_id,
        sessionId: crypto.randomUUID(),
        opensSession: true,
        phase: 'placed',
        status: 'running',
        placedAs: 'running',
        due: 0,
        epoch: 1,
        beat: 1,
        replies: 0,
        wakes: 0,
        request: {
          message: 'left behind',
          app_name: 'main',
          kb_enhance: false,
          plan: false,
          reasoning: false,
          client_tz: 'UTC',
          ...request,
        },
        fingerprint: '',
        messageId: crypto.randomUUID(),
        answerId: crypto.randomUUID(),
        model: key,
        price,
        terms: {
          supports,
          contextTokens,
          outputTokensMax,
          instruction: 'Answer.',
          onInterrupt: 'continue',
        },
        hold: 1,
        createdAt: now,
        ...change,
      }
      await server.engine<Ledger>('billing').hold(run.orgId, { of: run.id, amount: run.hold })
      await storage.insert(Sessions, {
        id: run.sessionId,
        orgId: run.orgId,
        userId: run.userId,
        title: 'Left',
        appName: 'main',
        active: run.id,
        latest: run.id,
        queue: [],
        queued: 0,
        paused: false,
        rev: 0,
        createdAt: now,
        updatedAt: now,
      })
      if (records.length > 0) await eventlog.append(`${run.orgId}/${streamOf(run.id)}`, records)
      await storage.insert(Runs, run)
      return run
    },
  }
}
