// Supervises a plugin's thread: starts it, checks that it answers, and starts it again when it has
// ended.
import { Worker } from 'node:worker_threads'
import { fault, type Fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { atMost } from '../deadline.ts'
import { createRpc, type Rpc, type Message } from './rpc.ts'
import type { ResourceLimits } from '../kernel-ports.ts'
import type { Hello, Manifest, Start } from './manifest.ts'

/**
 * Milliseconds: for undoing a plugin; the longest pause before a restart; the lifetime after which
 * earlier ends are forgotten.
 */
const retireMsMax = 5000
const pauseMsMax = 60_000
const soundMs = 60_000
/** MiB that an empty thread needs, beside its limits. */
const ownMiB = 32

type Parts = { readonly start: Start; readonly bounds: ResourceLimits; readonly clock: Clock }
type Running = {
  readonly hello: Exclude<Hello, { refused: string }>
  readonly link: Rpc
  end(why: string): Promise<void>
}

const workerUrl = () => new URL(import.meta.url.replace(/supervisor\.(ts|js)[^/]*$/, 'worker.$1'))
const away = (name: string, why: string, retryAfterMs = 1000): Fault =>
  fault('UNAVAILABLE', { what: `The plugin ${name}`, why }, { retryAfterMs })
const MiB = 1 << 20

/**
 * Runs the thread once. Rejects with the sentence that says why it did not serve. Calls `onEnd`
 * once, with the reason, when the thread has ended.
 */
export async function run(
  { start, bounds, clock }: Parts,
  answer: (target: string, value: unknown) => unknown,
  onEnd: (why: string) => void = () => undefined,
): Promise<Running> {
  const worker = new Worker(workerUrl(), {
    workerData: start,
    env: {},
    resourceLimits: {
      maxOldGenerationSizeMb: bounds.memory_mb + ownMiB,
      maxYoungGenerationSizeMb: 16,
    },
  })
  const watching = new AbortController()
  const first = Promise.withResolvers<Hello>()
  const link = createRpc(message => worker.postMessage(message), answer)
  let name = 'in a thread'
  let whyEnded: string | undefined
  const gone = new Promise<void>(done =>
    worker.once('exit', () => {
      const why = whyEnded ?? 'its thread has ended'
      watching.abort()
      link.end(away(name, why))
      first.reject(new Error(why))
      onEnd(why)
      done()
    }),
  )
  const end = async (why: string) => {
    whyEnded ??= why
    await worker.terminate()
    await gone
  }
  worker.on('error', (error: NodeJS.ErrnoException) => {
    whyEnded ??=
      error.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? `it used more than ${bounds.memory_mb} MiB`
        : `it threw where nobody could catch it: ${error.message}`
  })
  worker.on('message', (message: Message | readonly ['hello', Hello]) => {
    if (message[0] === 'hello') first.resolve(message[1])
    else link.receive(message)
  })
  const late = new AbortController()
  void clock.sleep(start.stepMs, late.signal).then(
    () => end(`it did not start within ${start.stepMs} ms (PLUGIN_STEP_MS)`),
    () => undefined,
  )
  const hello = await first.promise.finally(() => late.abort())
  if ('refused' in hello) {
    await end(hello.refused)
    throw new Error(hello.refused)
  }
  name = hello.manifest.name
  const pulse = async () => {
    for (;;) {
      await clock.sleep(Math.min(1000, bounds.stall_ms / 2), watching.signal)
      const silent = new AbortController()
      void clock.sleep(bounds.stall_ms, silent.signal).then(
        () => end(`it did not answer for ${bounds.stall_ms} ms`),
        () => undefined,
      )
      const buffers = (await link.call('pulse').finally(() => silent.abort())) as number
      if (buffers > bounds.memory_mb * MiB)
        return end(`its buffers take more than ${bounds.memory_mb} MiB`)
    }
  }
  if (start.serve) void pulse().catch(() => undefined)
  return { hello, link, end }
}

export type WorkerSupervisor = {
  /** The contributed items; resolves when the thread serves for the first time. */
  readonly ready: Promise<Exclude<Hello, { refused: string }>>
  /**
   * Calls the thread. UNAVAILABLE during a restart, and for calls that were under way when the
   * thread ended.
   */
  call(target: string, value?: unknown): Promise<unknown>
  close(): Promise<void>
}
/**
 * Supervises for as long as the generation lives. `manifest`: the plugin's data when it was
 * checked. Files that no longer match it are not started.
 */
export function superviseWorker(
  parts: Parts & {
    readonly manifest: Manifest
    readonly log: Log
    readonly answer: (target: string, value: unknown) => unknown
  },
): WorkerSupervisor {
  const { manifest, log, clock, answer } = parts
  const { name } = manifest
  const closing = new AbortController()
  const said = JSON.stringify(manifest)
  let ends = 0
  let current: Promise<Running>

  const begin = async (): Promise<Running> => {
    const since = clock.monotonic()
    // A thread that never served is reported by its rejection only. A second report would start it
    // twice.
    let serves = false
    const running = await run(parts, answer, why => {
      if (!serves || closing.signal.aborted) return
      log('error', 'thread.ended', { why })
      again(why, clock.monotonic() - since)
    })
    serves = JSON.stringify(running.hello.manifest) === said
    if (serves) return running
    await running.end('its files have changed')
    throw new Error('its files have changed since; reload it')
  }
  const set = (next: Promise<Running>) => {
    current = next
    current.catch(() => undefined)
  }
  /** Restarts at once after a long life, and after growing pauses when lives are short. */
  const again = (why: string, livedMs: number): void => {
    ends = livedMs > soundMs ? 1 : ends + 1
    const pauseMs = ends === 1 ? 0 : Math.min(pauseMsMax, 250 * 2 ** ends)
    set(Promise.reject(away(name, why, Math.max(1000, pauseMs))))
    const restart = async () => {
      if (pauseMs > 0) await clock.sleep(pauseMs, closing.signal)
      if (!closing.signal.aborted)
        set(
          begin().catch((error: Error) => {
            again(error.message, 0)
            throw away(name, error.message)
          }),
        )
    }
    void restart().catch(() => undefined)
  }
  const first = begin()
  set(first)
  return {
    ready: first.then(({ hello }) => hello),
    call: async (target, value) => (await current).link.call(target, value),
    async close() {
      if (closing.signal.aborted) return
      closing.abort()
      const running = await current.catch(() => undefined)
      if (!running) return
      const retired = running.link.call('retire').catch(() => undefined)
      await atMost(clock, retireMsMax, retired, () => undefined)
      await running.end('it was unloaded')
    },
  }
}
