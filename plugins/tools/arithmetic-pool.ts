// Calculates in threads. An expression that takes too long costs its thread, and blocks neither the
// process nor other expressions.
import { Worker } from 'node:worker_threads'
import { fault, type Fault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ToolsConfig } from './config.ts'

/** `why`: what the expression is refused for. */
export type Reckoned = { readonly result: string } | { readonly why: string }
export type ArithmeticPool = {
  /**
   * Plain digits. INVALID_FIELD for what is not arithmetic, or takes too long; SHEDDING where too
   * many wait; UNAVAILABLE when the thread ended by itself.
   */
  reckon(
    expression: string,
    by: { readonly userId: string; readonly signal: AbortSignal },
  ): Promise<string>
}
type Deps = {
  readonly config: ToolsConfig
  readonly clock: Clock
  readonly log: Log
  defer(undo: () => unknown): void
}
type Waiting = {
  readonly expression: string
  readonly userId: string
  readonly resolve: (result: string) => void
  readonly reject: (reason: unknown) => void
}
type Thread = {
  ask(expression: string): Promise<Reckoned>
  readonly ready: Promise<unknown>
  end(): Promise<unknown>
}

/** A thread that has not started after so many milliseconds will not. */
const startMsMax = 30_000
/**
 * Parts of a time limit. A process that was stopped for a while has lost one part, as its threads
 * have.
 */
const limitParts = 10

// Where this file came from tells what its neighbour is called: packages carry JavaScript.
const threadUrl = () =>
  new URL(import.meta.url.replace(/arithmetic-pool\.(ts|js)[^/]*$/, 'arithmetic-worker.$1'))

/** The caller hears how the call ended. Without a caller, a rejection is ignored. */
function listen(): PromiseWithResolvers<unknown> {
  const heard = Promise.withResolvers<unknown>()
  heard.promise.catch(() => 'nobody asked')
  return heard
}

function startThread(memoryMb: number): Thread {
  const worker = new Worker(threadUrl(), {
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 4 },
  })
  let heard = listen()
  let ended: Error | undefined
  const next = (): Promise<unknown> => {
    // It keeps the process alive while somebody waits for it.
    worker.ref()
    return ended ? Promise.reject(ended) : heard.promise.finally(() => worker.unref())
  }
  const end = (why: Error) => {
    ended ??= why
    heard.reject(ended)
  }
  const answered = (answer: unknown) => {
    const { resolve } = heard
    heard = listen()
    resolve(answer)
  }
  worker.on('message', answered)
  worker.on('error', error => end(error as Error))
  worker.on('exit', () => end(new Error('The thread ended.')))
  const ready = next()
  ready.catch(() => 'told to whoever asks')
  return {
    ready,
    async ask(expression) {
      await ready
      worker.postMessage(expression)
      return (await next()) as Reckoned
    },
    end: () => worker.terminate(),
  }
}

export function createArithmeticPool({ config, clock, log, defer }: Deps): ArithmeticPool {
  const {
    calculator_ms: msMax,
    calculator_threads_max: threadsMax,
    calculator_waiting_max: waitingMax,
    calculator_memory_mb: memoryMb,
  } = config
  const idle: Thread[] = []
  const busy = new Map<Waiting, Thread>()
  const waiting: Waiting[] = []
  // One thread always stays free for other users.
  const perUser = Math.max(1, threadsMax - 1)
  let isClosed = false

  const refuse = (why: string): Fault => fault('INVALID_FIELD', { field: 'expression', why })
  const passed = async (ms: number, signal: AbortSignal): Promise<'late'> => {
    for (let part = 0; part < limitParts; part++) await clock.sleep(ms / limitParts, signal)
    return 'late'
  }
  const within = async <T>(ms: number, promise: Promise<T>): Promise<T | 'late'> => {
    const over = new AbortController()
    try {
      return await Promise.race([promise, passed(ms, over.signal).catch(() => promise)])
    } finally {
      over.abort()
    }
  }
  const work = async (thread: Thread, expression: string): Promise<string> => {
    if ((await within(startMsMax, thread.ready)) === 'late')
      throw new Error('The thread did not start.')
    const answer = await within(msMax, thread.ask(expression))
    if (answer === 'late') throw refuse(`takes longer than ${msMax} ms`)
    if ('why' in answer) throw Object.assign(refuse(answer.why), { isAnswer: true })
    return answer.result
  }
  const toldOf = (error: Error & { code?: string }): Error => {
    if (error.code === 'INVALID_FIELD') return error
    if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') return refuse(`takes more than ${memoryMb} MiB`)
    if (!isClosed) log('warn', 'calculator', { error })
    return fault(
      'UNAVAILABLE',
      { what: 'The calculator', why: 'its thread ended' },
      { cause: error },
    )
  }
  const run = async (one: Waiting, thread: Thread): Promise<void> => {
    busy.set(one, thread)
    const outcome = await work(thread, one.expression).then(
      result => ({ result }),
      (error: Error & { isAnswer?: true }) => ({ error }),
    )
    busy.delete(one)
    // A thread that has answered serves again; one spare thread is enough.
    const isSound = !('error' in outcome) || outcome.error.isAnswer === true
    if (isSound && !isClosed && (waiting.length > 0 || idle.length === 0)) idle.push(thread)
    else void thread.end()
    if ('error' in outcome) one.reject(toldOf(outcome.error))
    else one.resolve(outcome.result)
    serve()
  }
  const countOf = (userId: string) => [...busy.keys()].filter(one => one.userId === userId).length
  const serve = () => {
    for (;;) {
      const at =
        busy.size < threadsMax ? waiting.findIndex(({ userId }) => countOf(userId) < perUser) : -1
      if (at < 0) return
      void run(waiting.splice(at, 1)[0]!, idle.pop() ?? startThread(memoryMb))
    }
  }
  defer(async () => {
    isClosed = true
    const gone = fault('STOPPING')
    for (const one of waiting.splice(0)) one.reject(gone)
    await Promise.all([...idle.splice(0), ...busy.values()].map(thread => thread.end()))
  })

  return {
    async reckon(expression, { userId, signal }) {
      signal.throwIfAborted()
      if (isClosed) throw fault('STOPPING')
      if (waiting.length >= waitingMax)
        throw fault('SHEDDING', { seconds: Math.ceil(msMax / 1000) }, { retryAfterMs: msMax })
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const one: Waiting = { expression, userId, resolve, reject }
      const leave = () => {
        const at = waiting.indexOf(one)
        if (at >= 0) waiting.splice(at, 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      waiting.push(one)
      serve()
      return promise.finally(() => signal.removeEventListener('abort', leave))
    },
  }
}
