// A worker as a process of its own, so that it can be killed: `queue-child.ts <url> <lease in
// milliseconds>`. A line for each job: `ran <n>` at its end, or `holds <n>` and then nothing until
// its signal aborts.
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '#adapters/clock/system.ts'
import type { Queue } from '#ports/queue.ts'
import { loadAdapter } from '../../../kernel/adapters.ts'
import { opening } from '../../conformance/opening.ts'

const [url, leaseMs] = process.argv.slice(2)
const say = (line: string) => process.stdout.write(`${line}\n`)
const { adapter } = await loadAdapter('queue', 'url', url!, [])
const queue = (await adapter.open(opening(url!, { clock: systemClock() }))) as Queue
queue.define(
  'a',
  async ({ data, signal }) => {
    const { n, hold } = data as { n: number; hold?: boolean }
    if (!hold) {
      await wait(5)
      say(`ran ${n}`)
      return
    }
    say(`holds ${n}`)
    // A timer, since nothing else would keep the process.
    await wait(60_000, undefined, { signal })
  },
  { leaseMs: Number(leaseMs) },
)
process.once('SIGTERM', () => void queue.close().then(() => say('closed')))
say('ready')
