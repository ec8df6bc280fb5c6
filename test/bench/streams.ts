// What an idle event stream costs: the server's resident memory with many of them open and nothing to say.
import { Agent, request } from 'node:http'
import { residentMiB, type Target } from './servers.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** KiB a stream. */
export async function idleStream({ base, token, pids }: Target, count: number): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const started = await fetch(`${base}/api/v1/chat`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"message":"[[stall_after=1]]"}' })
  const { run_id: runId } = (await started.json()) as { run_id: string }
  await pause(2000)
  const before = residentMiB(pids), agent = new Agent({ keepAlive: true, maxSockets: count })
  const open = await Promise.all(Array.from({ length: count }, () => new Promise<{ destroy(): void }>((opened, failed) => {
    request(`${base}/api/v1/runs/${runId}/events`, { agent, headers }, response => {
      response.once('data', () => opened(response)).on('error', () => undefined)
    }).on('error', failed).end()
  })))
  await pause(3000)
  const after = residentMiB(pids)
  for (const each of open) each.destroy()
  agent.destroy()
  await fetch(`${base}/api/v1/runs/${runId}/cancel`, { method: 'POST', headers })
  return ((after - before) * 1024) / count
}
