// A server whose model does what the message says, such as `[[tokens=3]]`, and who starts runs on
// it.
import { definePlugin, into } from '#kernel'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { Tools, type Tool } from '../../../plugins/runs/api.ts'
import {
  readEvents,
  startServer,
  type Account,
  type SseEvent,
} from '../../conformance/plugin/server.ts'

export type Started = {
  run_id: string
  session_id: string
  status: string
  queue_seq: number
  resumed: boolean
  cursor: number
}
const unlimited = { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000' }
/** Queues and times that are short enough for a test to reach their bounds. */
const short = {
  RUNS_QUEUE_MAX: '3',
  RUNS_STALL_MS: '400',
  RUNS_LEASE_MS: '600',
  RUNS_SWEEP_MS: '100',
}
export const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
export const types = (list: { event: string }[]) => list.map(({ event }) => event)

export async function startRuns() {
  const server = await startServer({ env: { ...unlimited, ...short } })
  return {
    server,
    chat: async (who: Account, body: object, headers: Record<string, string> = {}) => {
      const answer = await server.call('POST', '/chat', { token: who.token, body, headers })
      return { ...answer, run: answer.body as Started }
    },
    events: async (who: Account, runId: string) =>
      readEvents(await server.stream(who.token, runId)),
    balanceOf: async (who: Account) =>
      (await server.call('GET', '/balance', { token: who.token })).body as {
        balance: number
        held: number
        available: number
      },
  }
}

/** One user of a server with these tools. */
export async function startTools(tools: readonly Tool[]) {
  const plugin = definePlugin({
    name: 'test-tools',
    version: '1.0.0',
    kernel: '^1.0.0',
    contributes: tools.map(tool => into(Tools, () => tool)),
  })
  const server = await startServer({
    plugins: [...(await loadPlugins()), plugin],
    env: { ...unlimited, RUNS_SWEEP_MS: '50', RUNS_QUESTION_MS: '1500', DRAIN_MS: '100' },
  })
  const who = await server.account(1000)
  const chat = async (message: string) =>
    (await server.call('POST', '/chat', { token: who.token, body: { message } })).body as Started
  const read = async (runId: string, stop?: (event: SseEvent) => boolean) =>
    readEvents(await server.stream(who.token, runId), stop)
  return {
    server,
    who,
    chat,
    read,
    answered: async (message: string) => read((await chat(message)).run_id),
  }
}

/** A user of a server whose model is the one that needs no provider. */
export async function startOffline() {
  const server = await startServer({ env: { MODELS_URL: 'offline:?interval_ms=0' } })
  const { token } = await server.account(100)
  const ask = async (body: object) => {
    const run = (await server.call('POST', '/chat', { token, body })).body as Started
    const list = await readEvents(await server.stream(token, run.run_id))
    const text = list
      .filter(({ event }) => event === 'token')
      .map(({ data }) => data['text'])
      .join('')
    return { run, list, text }
  }
  return { server, token, ask }
}
