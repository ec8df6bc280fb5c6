// The main thread's side of a database file. Operations of one turn of the event loop travel
// together, and answers come in order.
import { Worker } from 'node:worker_threads'
import { fault, type Fault } from '#contracts/faults.ts'
import { lost, raise } from './failures.ts'
import type { Batch, Failure, Operation, Reply, Start, Started } from './protocol.ts'

/**
 * Operations that may wait for the thread. Further ones are refused, so that they do not fill
 * memory.
 */
const pendingMax = 100_000

type Answered = {
  readonly write: boolean
  readonly done: (answer: never) => void
  readonly failed: (error: Fault) => void
}
type Waiter = {
  readonly through: number
  readonly resolve: () => void
  readonly reject: (error: Fault) => void
}

export type Watcher = {
  readonly settled: (through: number) => void
  readonly lost: () => void
  readonly ended: (why: Fault) => void
}
export type Writer = {
  readonly path: string
  /** The answer, as `convert` makes it of what the thread sends. */
  read<T>(operation: Operation, convert: (answer: never) => T): Promise<T>
  write<T>(operation: Operation, convert: (answer: never) => T): Promise<T>
  /** Everything submitted so far is on disk; rejects when any of it was lost. */
  durable(): Promise<void>
  /** Changes when applied writes were lost. */
  epoch(): number
  /** Somebody will wait for what was submitted to be on disk. */
  hasten(): void
  /** The number of the last operation submitted, for `settled`. */
  last(): number
  /**
   * Calls `watcher` with the number of the last operation on disk, after a loss, and at the end.
   * The returned function stops it.
   */
  watch(watcher: Watcher): () => void
  close(): Promise<void>
}

// The worker has this file's extension: packages carry JavaScript.
const workerUrl = () => new URL(import.meta.url.replace(/writer\.(ts|js)[^/]*$/, 'worker.$1'))
export const closed = () => fault('UNAVAILABLE', { what: 'The database', why: 'it is closed' })
const isFailure = (answer: unknown): answer is Failure =>
  typeof answer === 'object' && answer !== null && !Array.isArray(answer)

function startThread(start: Start): Promise<Worker> {
  const thread = new Worker(workerUrl(), {
    workerData: start,
    resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 4 },
  })
  return new Promise((resolve, reject) => {
    thread.once('error', reject)
    thread.once('message', ({ refusal }: Started) => {
      thread.removeListener('error', reject)
      if (refusal) reject(raise(refusal))
      else resolve(thread)
    })
  })
}

export async function openWriter(start: Start, now: () => number): Promise<Writer> {
  const thread = await startThread(start)
  const watchers = new Set<Watcher>()
  const inFlight: Answered[][] = []
  let waiting: Answered[] = []
  let operations: Operation[] = []
  let waiters: Waiter[] = []
  let [epoch, submitted, lastWrite, settled, pending, ask, scheduled] = [
    0,
    0,
    0,
    0,
    0,
    false,
    false,
  ]
  let ended: Fault | undefined
  let closing: Promise<void> | undefined

  function flush(): void {
    scheduled = false
    if (ended || (operations.length === 0 && !ask)) return
    thread.postMessage([epoch, submitted, now(), ask, operations] satisfies Batch)
    if (waiting.length > 0) inFlight.push(waiting)
    waiting = []
    operations = []
    ask = false
  }
  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(flush)
  }
  function submit(operation: Operation, answered: Answered): void {
    if (ended) return answered.failed(ended)
    if (closing !== undefined) return answered.failed(closed())
    if (pending >= pendingMax)
      return answered.failed(
        fault(
          'UNAVAILABLE',
          { what: 'The database', why: 'too many operations wait for it' },
          { retryAfterMs: 1000 },
        ),
      )
    pending++
    submitted++
    if (answered.write) lastWrite = submitted
    operations.push(operation)
    waiting.push(answered)
    schedule()
  }
  function call<T>(
    write: boolean,
    operation: Operation,
    convert: (answer: never) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = (result: never) => {
        try {
          resolve(convert(result))
        } catch (error) {
          reject(error as Error)
        }
      }
      submit(operation, { write, done, failed: reject })
    })
  }
  function answer(batch: readonly Answered[], answers: readonly unknown[]): void {
    pending -= batch.length
    for (let at = 0; at < batch.length; at++) {
      const value = answers[at]
      if (isFailure(value)) batch[at]!.failed(raise(value))
      else batch[at]!.done(value as never)
    }
  }
  /**
   * Rejects those who wait for lost writes, and all that was not sent yet, because it builds upon
   * them.
   */
  function lose(to: number): void {
    epoch = to
    const refused = waiters
    waiters = []
    for (const { reject } of refused) reject(raise(lost))
    for (const [at, { write, failed }] of waiting.entries()) {
      if (!write) continue
      failed(raise(lost))
      operations[at] = ['nothing']
      waiting[at] = { write: false, done: () => {}, failed: () => {} }
    }
    for (const watcher of watchers) watcher.lost()
  }
  function settle(through: number): void {
    if (through === settled) return
    settled = through
    let count = 0
    while (count < waiters.length && waiters[count]!.through <= through) waiters[count++]!.resolve()
    if (count > 0) waiters = waiters.slice(count)
    for (const watcher of watchers) watcher.settled(through)
  }
  function end(why: Fault): void {
    if (ended) return
    ended = why
    for (const { failed } of [...inFlight.flat(), ...waiting]) failed(why)
    for (const { reject } of waiters) reject(why)
    inFlight.length = waiting.length = operations.length = waiters.length = 0
    for (const watcher of watchers) watcher.ended(why)
  }

  thread.on('message', ([to, through, answers]: Reply) => {
    if (answers) answer(inFlight.shift()!, answers)
    if (to !== epoch) lose(to)
    settle(through)
  })
  thread.on('error', error =>
    end(
      fault(
        'UNAVAILABLE',
        { what: 'The database', why: `its thread ended: ${(error as Error).message}` },
        { cause: error },
      ),
    ),
  )
  thread.on('exit', () => end(closed()))

  return {
    path: start.path,
    read: (operation, convert) => call(false, operation, convert),
    write: (operation, convert) => call(true, operation, convert),
    durable() {
      if (ended || closing) return Promise.reject(ended ?? closed())
      if (lastWrite <= settled) return Promise.resolve()
      return new Promise((resolve, reject) => {
        waiters.push({ through: lastWrite, resolve, reject })
        ask = true
        schedule()
      })
    },
    hasten() {
      ask = true
      schedule()
    },
    epoch: () => epoch,
    last: () => submitted,
    watch(watcher) {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    close() {
      if (ended) return Promise.resolve()
      flush()
      return (closing ??= new Promise(resolve => {
        thread.once('exit', () => resolve())
        thread.postMessage('close')
      }))
    },
  }
}
