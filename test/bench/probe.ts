// What a living server says of itself: its metrics, and over the debugger's protocol what no metric
// tells (the heap after a collection, the listeners of all emitters).
import type { Process } from '../support/process.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** Name, with labels as they are printed → value. */
export type Metrics = ReadonlyMap<string, number>
export async function readMetrics(port: number): Promise<Metrics> {
  // Its connection is among the handles that it tells of: always one.
  const text = await (
    await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: 'close' } })
  ).text()
  return new Map(
    [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)].map(([, name, value]) => [
      name!,
      Number(value),
    ]),
  )
}
/** The values of a metric by its one label. */
export const byLabel = (metrics: Metrics, name: string): Record<string, number> =>
  Object.fromEntries(
    [...metrics].flatMap(([key, value]) => {
      const label = new RegExp(`^${name}\\{\\w+="(.*)"\\}$`).exec(key)?.[1]
      return label === undefined ? [] : [[label, value]]
    }),
  )

export type Census = {
  readonly listeners: number
  /** By the emitter's class and the event. */
  readonly by: Readonly<Record<string, number>>
}

const countListeners = `function () {
  const { getEventListeners } = process.getBuiltinModule('node:events'), by = {}
  let listeners = 0
  const add = (name, count) => {
    if (count === 0) return
    listeners += count
    by[name] = (by[name] ?? 0) + count
  }
  for (const one of this) {
    // A class's own prototype is among them and cannot be asked.
    try {
      if (one instanceof AbortSignal)
        add('AbortSignal abort', getEventListeners(one, 'abort').length)
      else
        for (const name of one.eventNames())
          add(one.constructor.name + ' ' + String(name), one.listenerCount(name))
    } catch { continue }
  }
  return { listeners, by }
}`

type Answer = {
  readonly id?: number
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** Opens the server's debugger, which must have been given the port with --inspect-port. */
export async function attach({ child }: Process, port: number) {
  child.kill('SIGUSR1')
  let target: string | undefined
  for (let tries = 0; tries < 100 && target === undefined; tries++) {
    await pause(50)
    target = await fetch(`http://127.0.0.1:${port}/json/list`).then(
      async response =>
        ((await response.json()) as { webSocketDebuggerUrl: string }[])[0]?.webSocketDebuggerUrl,
      () => undefined,
    )
  }
  if (target === undefined) throw new Error('The server does not open its debugger.')
  const socket = new WebSocket(target)
  const waiting = new Map<number, (answer: Answer) => void>()
  await new Promise((opened, failed) => {
    socket.onopen = opened
    socket.onerror = failed
  })
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  }
  let last = 0
  const call = async <T>(method: string, params: object = {}): Promise<T> => {
    const id = ++last
    const { result, error } = await new Promise<Answer>(done => {
      waiting.set(id, done)
      socket.send(JSON.stringify({ id, method, params }))
    })
    waiting.delete(id)
    if (error) throw new Error(`${method}: ${error.message}`)
    return result as T
  }
  const group = { objectGroup: 'census' }
  const count = async (prototype: string) => {
    const {
      result: { objectId: prototypeObjectId },
    } = await call<{ result: { objectId: string } }>('Runtime.evaluate', {
      expression: prototype,
      ...group,
    })
    const {
      objects: { objectId },
    } = await call<{ objects: { objectId: string } }>('Runtime.queryObjects', {
      prototypeObjectId,
      ...group,
    })
    const {
      result: { value },
    } = await call<{ result: { value: Census } }>('Runtime.callFunctionOn', {
      objectId,
      functionDeclaration: countListeners,
      returnByValue: true,
    })
    return value
  }
  const evaluate = async <T>(expression: string): Promise<T> =>
    (await call<{ result: { value: T } }>('Runtime.evaluate', { expression, returnByValue: true }))
      .result.value
  await evaluate(
    `process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc'); ` +
      'globalThis.collectGarbage = ' +
      `process.getBuiltinModule('node:vm').runInNewContext('gc'); 1`,
  )
  return {
    /** Bytes of the main thread's heap after a collection of garbage. The server stands still. */
    async heap(): Promise<number> {
      await evaluate('globalThis.collectGarbage()')
      return (await call<{ usedSize: number }>('Runtime.getHeapUsage')).usedSize
    },
    /** Listeners of what keeps the process alive, connections above all. Cheap. */
    listeners: () =>
      evaluate<number>(
        '[process, ...process._getActiveHandles()].reduce((sum, one) => sum + ' +
          '(one.eventNames?.() ?? []).reduce((count, name) => count + ' +
          'one.listenerCount(name), 0), 0)',
      ),
    /**
     * Listeners of every emitter and every signal that is not garbage. The server stands still for
     * a second, with thousands of streams for many.
     */
    async census(): Promise<Census> {
      const emitters = await count('process.getBuiltinModule("node:events").prototype')
      const signals = await count('AbortSignal.prototype')
      await call('Runtime.releaseObjectGroup', group)
      return {
        listeners: emitters.listeners + signals.listeners,
        by: { ...emitters.by, ...signals.by },
      }
    },
    close: () => socket.close(),
  }
}
export type Probe = Awaited<ReturnType<typeof attach>>
