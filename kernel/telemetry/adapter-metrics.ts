// Measures how long adapters' calls take and how they fail. Engines are wrapped when they are
// bound.
import type { Metric } from 'prom-client'
import { isFault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import { queueDepths } from './queue-depth.ts'

/** Upper bounds in seconds. */
const bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]
/** Not measured: these calls wait for future events, or for nothing. */
const unmeasured = new Set(['follow', 'ping', 'close', 'epoch'])
type Timing = {
  readonly port: string
  readonly method: string
  readonly counts: number[]
  sum: number
  count: number
}
type Failures = {
  readonly port: string
  readonly method: string
  readonly code: string
  count: number
}
type Value = { readonly labels: object; readonly value: number; readonly metricName?: string }

/**
 * Values are counted here and read at a scrape. The library's labelled histogram hashes its labels
 * at each observation.
 */
const collectedMetric = (
  name: string,
  type: 'histogram' | 'counter',
  help: string,
  values: () => Value[],
) =>
  ({
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: values() }),
    reset() {},
  }) as unknown as Metric

function namesOf(engine: object): (string | symbol)[] {
  const names = new Set<string | symbol>()
  for (
    let at: object | null = engine;
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  )
    for (const name of Reflect.ownKeys(at)) names.add(name)
  return [...names].filter(name => name !== 'constructor')
}

export function createAdapterMetrics(clock: Pick<Clock, 'monotonic' | 'sleep'>) {
  const timings = new Map<string, Timing>()
  const failures = new Map<string, Failures>()
  const timingOf = (port: string, method: string): Timing => {
    const key = `${port} ${method}`
    const timing = timings.get(key) ?? {
      port,
      method,
      counts: bounds.map(() => 0),
      sum: 0,
      count: 0,
    }
    timings.set(key, timing)
    return timing
  }
  const note = (timing: Timing, since: number) => {
    const seconds = (clock.monotonic() - since) / 1000
    let at = 0
    while (at < bounds.length && seconds > bounds[at]!) at++
    if (at < bounds.length) timing.counts[at]!++
    timing.sum += seconds
    timing.count++
  }
  const fail = ({ port, method }: Timing, error: unknown) => {
    // An aborted call throws the signal's reason, which is no error of the adapter.
    if (!(error instanceof Error) || error.name === 'AbortError') return
    const code = isFault(error) ? error.code : 'UNEXPECTED'
    const key = `${port} ${method} ${code}`
    const known = failures.get(key)
    if (known) known.count++
    else failures.set(key, { port, method, code, count: 1 })
  }
  /** Measures until the first batch. Later failures are counted too. */
  const untilFirst = (
    timing: Timing,
    since: number,
    iterable: AsyncIterable<unknown>,
  ): AsyncIterable<unknown> => ({
    [Symbol.asyncIterator]() {
      const inner = iterable[Symbol.asyncIterator]()
      let first = true
      return {
        next() {
          const step = inner.next()
          const isFirst = first
          first = false
          step.then(isFirst ? () => note(timing, since) : undefined, (error: unknown) =>
            fail(timing, error),
          )
          return step
        },
        return: async (value?: unknown) =>
          (await inner.return?.(value)) ?? { done: true as const, value },
      }
    },
  })
  const measured = (
    port: string,
    method: string,
    engine: Record<string, (...args: unknown[]) => unknown>,
  ) => {
    let timing: Timing | undefined
    return (...args: unknown[]): unknown => {
      const since = clock.monotonic()
      const answer = engine[method]!(...args)
      if (answer instanceof Promise)
        answer.then(
          () => note((timing ??= timingOf(port, method)), since),
          (error: unknown) => fail((timing ??= timingOf(port, method)), error),
        )
      else if (typeof answer === 'object' && answer !== null) {
        if (Symbol.asyncIterator in answer)
          return untilFirst(
            (timing ??= timingOf(port, method)),
            since,
            answer as AsyncIterable<unknown>,
          )
        // The object of one organisation has the methods that do the work.
        if (method === 'within') return watch(port, answer)
      }
      return answer
    }
  }
  /** Wraps an engine. Callers get the engine's own promises, so that nobody waits longer. */
  function watch<T extends object>(port: string, engine: T): T {
    const face = {}
    for (const name of namesOf(engine)) {
      const isMethod = typeof engine[name as keyof T] === 'function'
      const raw = engine as never
      if (isMethod && typeof name === 'string' && !unmeasured.has(name))
        Object.defineProperty(face, name, {
          value: measured(port, name, raw),
          writable: true,
          enumerable: true,
        })
      else if (isMethod)
        Object.defineProperty(face, name, {
          value: (...args: unknown[]): unknown =>
            (engine as Record<PropertyKey, (...args: unknown[]) => unknown>)[name]!(...args),
          writable: true,
          enumerable: true,
        })
      else
        Object.defineProperty(face, name, { get: () => engine[name as keyof T], enumerable: true })
    }
    return face as T
  }
  const series = ({ port, method, counts, sum, count }: Timing): Value[] => {
    const name = 'adapter_call_duration_seconds'
    let below = 0
    return [
      ...bounds.map((le, at) => ({
        metricName: `${name}_bucket`,
        labels: { port, method, le },
        value: (below += counts[at]!),
      })),
      { metricName: `${name}_bucket`, labels: { port, method, le: '+Inf' }, value: count },
      { metricName: `${name}_sum`, labels: { port, method }, value: sum },
      { metricName: `${name}_count`, labels: { port, method }, value: count },
    ]
  }
  return {
    watch,
    /** `queue`: the metrics count its jobs of these names. */
    metrics: (queue: Pick<Queue, 'depth'>, names: () => readonly string[]) => [
      collectedMetric(
        'adapter_call_duration_seconds',
        'histogram',
        'Calls of adapters that came to an answer; of a stream: until its first batch.',
        () => [...timings.values()].flatMap(series),
      ),
      collectedMetric(
        'adapter_call_errors_total',
        'counter',
        'Calls of adapters that failed, by the code of the fault.',
        () => [...failures.values()].map(({ count, ...labels }) => ({ labels, value: count })),
      ),
      queueDepths({ clock, queue, names }),
    ],
  }
}
