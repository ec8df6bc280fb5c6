// Agenda's queue on the server that MONGODB_URL names, and processes that work on it.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '#adapters/clock/system.ts'
import { agendaQueue } from '#adapters/queue/agenda.ts'
import type { Queue } from '#ports/queue.ts'
import { real } from '../../conformance/queue/common.ts'
import type { Test } from '../../conformance/runner.ts'
import { freshDatabase } from './mongodb.ts'

/** Patient: what is not told at once is looked for every second. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await condition()) return
    await real(20)
  }
  throw new Error(`waited in vain: ${what}`)
}
export const ends = (queue: Queue, id: string, state: string) =>
  until(async () => (await queue.state(id)) === state, `${id} ${state}`)

/**
 * A database of its own, queues on it here, workers on it as processes, and its jobs as they lie
 * there.
 */
async function place(children: Set<ChildProcess>) {
  const { url, connect, clean } = freshDatabase()
  const looking = await connect()
  const opened: Queue[] = []
  const started: ChildProcess[] = []
  return {
    url,
    jobs: looking.db.collection('agendaJobs'),
    async open() {
      const queue = await agendaQueue({
        connection: await connect(),
        clock: systemClock(),
        log: () => undefined,
      })
      opened.push(queue)
      return queue
    },
    async worker(leaseMs = 30_000) {
      const child = spawn(
        process.execPath,
        [
          '--disable-warning=ExperimentalWarning',
          resolve(import.meta.dirname, '../children/queue-child.ts'),
          `agenda:${url.href}`,
          String(leaseMs),
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      const lines: string[] = []
      const ended = once(child, 'exit')
      children.add(child.once('exit', () => children.delete(child)))
      started.push(child)
      createInterface({ input: child.stdout! }).on('line', line => lines.push(line))
      await until(() => lines.includes('ready'), 'a worker')
      return { lines, kill: (signal: NodeJS.Signals) => (child.kill(signal), ended) }
    },
    async clean() {
      for (const queue of opened) await queue.close()
      for (const child of started) child.kill('SIGKILL')
      await looking.close()
      await clean()
    },
  }
}

/** Checks with a place each. No worker outlives the file of its check. */
export function onAgenda(test: Test & { after(end: () => void): void }) {
  const children = new Set<ChildProcess>()
  test.after(() => children.forEach(child => child.kill('SIGKILL')))
  return (title: string, run: (at: Awaited<ReturnType<typeof place>>) => Promise<void>): void =>
    test(`agenda: ${title}`, async () => {
      const at = await place(children)
      try {
        await run(at)
      } finally {
        await at.clean()
      }
    })
}
