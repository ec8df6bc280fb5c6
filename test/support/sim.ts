// Simulation at the port boundary: processes that await nothing but ports share one world, in which
// a scheduler lets exactly one call go on at a time.
// Every call of a port is two moments, before its effect and after it; at each of them a process
// may die, or stand still until its leases are gone.
import { uuids } from '#adapters/clock/lib/uuid7.ts'
import { seeded } from '#adapters/clock/manual/seeded.ts'
import type { Clock } from '#ports/clock.ts'

/**
 * Decides what the scheduler leaves open: a number from 0 up to `options` (exclusive). 0 is the
 * calm choice.
 */
export type Choose = (kind: 'order' | 'fault' | 'survive' | 'pick', options: number) => number
export const faultKinds = ['none', 'crash', 'stall'] as const

export type Process = {
  readonly number: number
  readonly name: string
  /** Does not die and does not stand still: a client, a disk. */
  readonly steady: boolean
  alive: boolean
  /** Until when it stands still, in the world's milliseconds. */
  stalledUntil: number
  readonly clock: Clock
  /** Rejects with `gone` when the process dies. */
  readonly died: Promise<never>
  readonly die: () => void
}
export const gone = new Error('The process is gone.')

/** Said of a call in a trace; made only where somebody reads it. */
type Label = string | (() => string)
type Parked = {
  readonly process: Process
  readonly label: Label
  readonly isAfter: boolean
  readonly go: () => void
}
/** A moment at which a fault may come: before or after the effect of a call. */
export type Moment = { readonly process: Process; readonly isAfter: boolean }
type Timer = { readonly process: Process; readonly at: number; readonly go: () => void }

const epochMs = Date.UTC(2030, 0, 1)

export type World = ReturnType<typeof createWorld>

/**
 * `stallMs`: how long a process stands still; longer than its leases. `skewMs`: how far apart the
 * processes' clocks are.
 */
export function createWorld({
  choose,
  stallMs,
  skewMs = 0,
  seed = 1,
}: {
  choose: Choose
  stallMs: number
  skewMs?: number
  seed?: number
}) {
  let parked: Parked[] = []
  let timers: Timer[] = []
  let now = 0
  let steps = 0
  let count = 0
  let broken: unknown
  const processes: Process[] = []
  const moments: Moment[] = []
  /** One line for each fault. */
  const trace: string[] = []
  const hooks = { died: (_: Process) => {} }

  const clockOf = (process: () => Process, number: number): Clock => {
    const random = seeded(seed * 1000 + number)
    const skew = (number % 3) * skewMs
    const randomBytes = (bytes: number) => Uint8Array.from({ length: bytes }, () => random() * 256)
    // Whole milliseconds, as clocks tell them.
    const read = () => Math.floor(epochMs + now + skew)
    return {
      now: read,
      monotonic: () => now + number * 1_000_000,
      random,
      randomBytes,
      id: uuids({ now: read, randomBytes }),
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason)
          const timer: Timer = {
            process: process(),
            at: now + Math.max(0, ms),
            go: () => {
              signal?.removeEventListener('abort', abort)
              resolve()
            },
          }
          const abort = () => {
            timers = timers.filter(one => one !== timer)
            reject(signal!.reason)
          }
          signal?.addEventListener('abort', abort, { once: true })
          timers.push(timer)
        }),
    }
  }
  const park = (process: Process, label: Label, isAfter: boolean): Promise<void> =>
    new Promise(go => {
      // Whoever is dead never comes back from a call.
      if (process.alive) parked.push({ process, label, isAfter, go })
    })
  const kill = (process: Process) => {
    process.alive = false
    parked = parked.filter(one => one.process !== process)
    timers = timers.filter(one => one.process !== process)
    process.die()
    hooks.died(process)
  }
  const canMove = ({ process }: { process: Process }) => process.stalledUntil <= now

  return {
    trace,
    moments,
    hooks,
    processes,
    now: () => now,
    steps: () => steps,
    broken: () => broken,
    kill,
    spawn(name: string, main: (process: Process) => Promise<unknown>, steady = false): Process {
      const number = ++count
      const { promise: died, reject } = Promise.withResolvers<never>()
      died.catch(() => undefined)
      const process: Process = {
        number,
        name: `${name}${number}`,
        steady,
        alive: true,
        stalledUntil: 0,
        died,
        die: () => reject(gone),
        clock: clockOf(() => process, number),
      }
      processes.push(process)
      main(process).catch((error: unknown) => {
        broken ??= error
      })
      return process
    },
    /** One effect upon the world, atomic as seen by all others. */
    async call<T>(process: Process, label: Label, effect: () => T | Promise<T>): Promise<T> {
      await park(process, label, false)
      const done = await Promise.resolve()
        .then(effect)
        .then(
          value => ({ value }),
          (error: unknown) => ({ error }),
        )
      await park(process, label, true)
      if ('error' in done) throw done.error
      return done.value
    },
    /**
     * Lets everything run until nothing can move any more, `settled` says so, or `stepsMax` moves
     * were made (then false).
     */
    async run(settled: () => boolean, stepsMax = 30_000): Promise<boolean> {
      while (steps < stepsMax && broken === undefined) {
        // All microtasks have run when this turn comes: each process is parked, asleep or over.
        await new Promise(setImmediate)
        const ready = parked.filter(canMove)
        const due = timers.filter(timer => canMove(timer) && timer.at <= now)
        if (ready.length + due.length === 0) {
          const next = Math.min(
            ...timers.map(({ at, process }) => Math.max(at, process.stalledUntil)),
            ...parked.map(({ process }) => process.stalledUntil),
          )
          if (settled() || !Number.isFinite(next)) return true
          now = Math.max(next, now + 1)
          continue
        }
        steps++
        const chosen = choose('order', ready.length + due.length)
        const one = chosen < ready.length ? ready[chosen]! : due[chosen - ready.length]!
        if ('label' in one) {
          const fault = one.process.steady ? 0 : choose('fault', faultKinds.length)
          moments.push(one)
          if (fault > 0)
            trace.push(`${now} ${one.process.name} ${lineOf(one)} ${faultKinds[fault]}`)
          if (fault === 1) {
            kill(one.process)
            continue
          }
          if (fault === 2) {
            one.process.stalledUntil = now + stallMs
            continue
          }
          parked.splice(parked.indexOf(one), 1)
          now++
        } else timers.splice(timers.indexOf(one), 1)
        one.go()
      }
      return steps < stepsMax && broken === undefined
    },
  }
}

/** A port as one process sees it: each of the named methods is a call in the world. */
export function seenBy<T extends object>(
  world: World,
  process: Process,
  name: string,
  engine: T,
  methods: readonly (keyof T & string)[],
  effect: (method: string, args: readonly unknown[], act: () => unknown) => unknown = (
    _,
    __,
    act,
  ) => act(),
): T {
  const act = engine as unknown as Record<string, (...args: unknown[]) => unknown>
  return {
    ...engine,
    ...Object.fromEntries(
      methods.map(method => [
        method,
        (...args: unknown[]) =>
          world.call(
            process,
            () => labelOf(name, method, args),
            () => effect(method, args, () => act[method]!(...args)),
          ),
      ]),
    ),
  } as T
}

const lineOf = ({ label, isAfter }: Parked) =>
  `${typeof label === 'string' ? label : label()} ${isAfter ? 'after' : 'before'}`

/** For the trace: the port's method and what it is about. */
const labelOf = (port: string, method: string, args: readonly unknown[]): string => {
  const [first, second] = args as [unknown, unknown]
  const about = typeof first === 'string' ? first : (first as { name?: string } | undefined)?.name
  const given =
    typeof second === 'string' ? second.slice(-6) : (JSON.stringify(second)?.slice(0, 160) ?? '')
  const more = args[2] ? JSON.stringify(args[2]).slice(0, 120) : ''
  return `${port}.${method} ${about ?? ''} ${given} ${more}`
}
