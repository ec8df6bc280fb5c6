// The process's side of the search threads. Each thread has one call at a time; others wait here,
// where they can still be given up.
import { Worker } from 'node:worker_threads'
import { fault } from '#contracts/faults.ts'
import { closedFault } from '../../_shared/closable.ts'
import { raise } from '../../_shared/sqlite/failures.ts'
import type { Failure } from '../../_shared/sqlite/protocol.ts'
import type { openIndex } from './database.ts'

/** The kind, then what it takes. */
export type Call = readonly [kind: string, ...args: unknown[]]
export type Answer =
  | { readonly value: unknown; readonly failure?: undefined }
  | { readonly failure: Failure }
export type Thread = {
  call(
    call: Call,
    options?: { readonly weight?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<unknown>
  close(): Promise<void>
}

export const serviceName = 'The search index'
/**
 * Calls that may wait for a thread, and their bytes in all. Further calls are refused, so that they
 * do not fill memory.
 */
const waitingMax = 1000
const waitingBytesMax = 67_108_864

type Waiting = {
  readonly call: Call
  readonly weight: number
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
  readonly leave: () => void
}

// The worker has this file's extension: packages carry JavaScript.
const workerUrl = () => new URL(import.meta.url.replace(/threads\.(ts|js)[^/]*$/, 'worker.$1'))

/** Resolves when the thread has the file open. */
export async function startThread(start: Parameters<typeof openIndex>[0]): Promise<Thread> {
  const worker = new Worker(workerUrl(), {
    workerData: start,
    resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 4 },
  })
  const waiting: Waiting[] = []
  let weight = 0
  let current: Waiting | undefined
  let ended: Error | undefined
  let isClosing = false
  let closing: Promise<void> | undefined

  const next = () => {
    current = waiting.shift()
    // The thread keeps the process alive only while a caller waits for it.
    if (current || isClosing) worker.ref()
    else worker.unref()
    if (current) worker.postMessage(current.call)
    else if (isClosing) worker.postMessage(['close'])
  }
  const settle = (one: Waiting, act: () => void) => {
    weight -= one.weight
    one.leave()
    act()
  }
  const end = (why: Error) => {
    ended ??= why
    for (const one of [...(current ? [current] : []), ...waiting.splice(0)])
      settle(one, () => one.reject(ended))
    current = undefined
  }
  const opened = new Promise<void>((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (answer: Answer) =>
      answer.failure ? reject(raise(answer.failure)) : resolve(),
    )
  })
  await opened.catch(async (error: unknown) => {
    await worker.terminate()
    throw error
  })
  worker.on('message', (answer: Answer) => {
    const one = current
    if (one)
      settle(one, () =>
        answer.failure ? one.reject(raise(answer.failure)) : one.resolve(answer.value),
      )
    next()
  })
  worker.on('error', error =>
    end(
      fault(
        'UNAVAILABLE',
        { what: serviceName, why: `its thread ended: ${(error as Error).message}` },
        { cause: error },
      ),
    ),
  )
  worker.on('exit', () => end(closedFault(serviceName)))
  next()

  return {
    call(call, { weight: bytes = 0, signal } = {}) {
      if (ended || isClosing) return Promise.reject(ended ?? closedFault(serviceName))
      if (signal?.aborted) return Promise.reject(signal.reason as Error)
      if (waiting.length >= waitingMax || weight + bytes > waitingBytesMax)
        return Promise.reject(
          fault(
            'UNAVAILABLE',
            { what: serviceName, why: 'too many calls wait for it' },
            { retryAfterMs: 1000 },
          ),
        )
      return new Promise((resolve, reject) => {
        // A call under way runs to its end, but its caller no longer waits.
        const given = () => {
          const at = waiting.indexOf(one)
          if (at >= 0) settle(waiting.splice(at, 1)[0]!, () => undefined)
          reject(signal!.reason)
        }
        const one: Waiting = {
          call,
          weight: bytes,
          resolve,
          reject,
          leave: () => signal?.removeEventListener('abort', given),
        }
        signal?.addEventListener('abort', given, { once: true })
        weight += bytes
        waiting.push(one)
        if (!current) next()
      })
    },
    close() {
      if (ended) return Promise.resolve()
      isClosing = true
      return (closing ??= new Promise(resolve => {
        worker.once('exit', () => resolve())
        if (!current) next()
      }))
    },
  }
}
