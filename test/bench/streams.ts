// What an idle event stream costs: the server's resident memory with many open and nothing to say.
import { residentMiB, type Target } from './servers.ts'
import { createWire } from './wire.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** KiB a stream. */
export async function idleStream({ base, token, pids }: Target, count: number): Promise<number> {
  const wire = createWire(`${base}/api/v1`, () => token!)
  const { run_id: runId } = await wire.post<{ run_id: string }>('/chat', {
    message: '[[stall_after=1]]',
  })
  await pause(2000)
  const before = residentMiB(pids)
  const open = await Promise.all(
    Array.from({ length: count }, async () => {
      const response = await wire.open(runId)
      return new Promise<{ destroy(): void }>(opened =>
        response.once('data', () => opened(response)).on('error', () => undefined),
      )
    }),
  )
  await pause(3000)
  const after = residentMiB(pids)
  for (const each of open) each.destroy()
  await wire.post(`/runs/${runId}/cancel`)
  wire.close()
  return ((after - before) * 1024) / count
}
