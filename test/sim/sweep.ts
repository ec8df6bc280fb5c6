// One fault at every moment of every script, and every pair of them; seeds beyond.
import { byChance, faultsAt, play } from './play.ts'
import type { Moment } from '../support/sim.ts'
import { scripts } from './scripts.ts'
import type { Script } from './scripts/script.ts'
import type { Kind } from './simulated-cluster.ts'

export type Failure = {
  readonly script: string
  readonly kind: Kind
  readonly order: number | undefined
  /** moment → kind */
  readonly faults: readonly (readonly [number, number])[]
  readonly seed?: number
  readonly bad: readonly string[]
  readonly at: readonly string[]
}
export type Count = { schedules: number; moves: number }

type World = { readonly script: Script; readonly kind: Kind; readonly order: number | undefined }

const kinds: readonly Kind[] = ['drivers', 'machine', 'roles']
export const kindWords: Readonly<Record<Kind, string>> = {
  drivers: 'two drivers',
  machine: 'one machine that loses what it had not synced',
  roles: 'an api process and a worker',
}

/**
 * The worlds of these scripts; that of roles in the first order alone, for its recoveries all wait
 * for a sweep.
 */
export const worlds = (
  orders: readonly (number | undefined)[],
  only?: readonly string[],
): World[] =>
  scripts
    .filter(({ name }) => !only || only.includes(name))
    .flatMap(script =>
      kinds.flatMap(kind =>
        (kind === 'roles' ? orders.slice(0, 1) : orders).map(order => ({ script, kind, order })),
      ),
    )

async function run(
  { script, kind, order }: World,
  faults: readonly (readonly [number, number])[],
  count: Count,
): Promise<{ failure: Failure | undefined; moments: readonly Moment[] }> {
  const { bad, trace, moments, steps } = await play(script, {
    choose: faultsAt(new Map(faults), order),
    kind,
  })
  count.schedules++
  count.moves += steps
  return {
    moments,
    failure:
      bad.length === 0 ? undefined : { script: script.name, kind, order, faults, bad, at: trace },
  }
}

/**
 * Whether a crash at the moment is the same as one at the next: the process has done its call, and
 * nobody else moves before it is about to do another.
 */
const isRepeated = (moments: readonly Moment[], at: number) =>
  moments[at]!.isAfter &&
  moments[at + 1]?.process === moments[at]!.process &&
  !moments[at + 1]!.isAfter

/**
 * A crash and a stall at each moment of the calm world; with a stride, one of both in turns at one
 * moment in so many.
 */
export async function* singles(
  world: World,
  count: Count,
  { stride = 1, from = 0 } = {},
): AsyncGenerator<Failure> {
  const { failure: calm, moments } = await run(world, [], count)
  if (calm) yield calm
  for (let at = from; at < moments.length; at += stride)
    for (const kind of stride > 1 ? [1 + (Math.floor(at / stride) % 2)] : [1, 2]) {
      if (kind === 1 && isRepeated(moments, at)) continue
      const { failure } = await run(world, [[at, kind]], count)
      if (failure) yield failure
    }
}

/** Two faults: about `most` of all pairs of moments, evenly spread; another `from` takes others. */
export async function* pairs(
  world: World,
  count: Count,
  { most, from }: { most: number; from: number },
): AsyncGenerator<Failure> {
  const {
    moments: { length: moments },
  } = await run(world, [], count)
  // The second fault may come later than the calm world lasts: the first has made it longer.
  const last = moments * 2
  const stride = Math.max(1, Math.floor((moments * last * 0.75) / most))
  for (let n = from % stride; n < moments * last; n += stride) {
    const first = Math.floor(n / last)
    const second = n % last
    if (second <= first) continue
    const { failure } = await run(
      world,
      [
        [first, 1 + (n % 2)],
        [second, 1 + (Math.floor(n / 2) % 2)],
      ],
      count,
    )
    if (failure) yield failure
  }
}

/** Everything by chance, a new world for each seed. */
export async function bySeed(seed: number, count: Count): Promise<Failure | undefined> {
  const script = scripts[seed % scripts.length]!
  const kind = kinds[Math.floor(seed / scripts.length) % 2]!
  const { bad, trace, steps } = await play(script, { choose: byChance(seed), seed, kind })
  count.schedules++
  count.moves += steps
  return bad.length === 0
    ? undefined
    : { script: script.name, kind, order: undefined, faults: [], seed, bad, at: trace }
}

const originOf = ({ order, faults, seed }: Failure) =>
  seed === undefined ? `order ${order ?? 'calm'}, faults ${JSON.stringify(faults)}` : `seed ${seed}`
export const told = (failure: Failure): string => {
  const { script, kind, bad, at } = failure
  return [
    `${script}, ${kindWords[kind]}, ${originOf(failure)}`,
    ...at.map(line => `  at ${line.slice(0, 200)}`),
    ...bad.map(line => `  ${line.slice(0, 300)}`),
  ].join('\n')
}
