// Two processes that put the same contents at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'

export async function putFromTwo({
  url,
  orgId,
  bytes,
  times,
  env = {},
}: {
  url: string
  orgId: string
  bytes: number
  times: number
  env?: NodeJS.ProcessEnv
}): Promise<string[][]> {
  const workers = await Promise.all(
    [0, 1].map(async () => {
      const child = spawn(
        process.execPath,
        [
          '--disable-warning=ExperimentalWarning',
          resolve(import.meta.dirname, 'blobs-child.ts'),
          url,
          orgId,
          String(bytes),
          String(times),
        ],
        { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } },
      )
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const ended = once(child, 'exit')
      await lines.next()
      return { child, lines, ended }
    }),
  )
  for (const { child } of workers) child.stdin.write('go\n')
  return Promise.all(
    workers.map(async ({ lines, ended }) => {
      const { value } = await lines.next()
      await ended
      return JSON.parse(value as string) as string[]
    }),
  )
}
