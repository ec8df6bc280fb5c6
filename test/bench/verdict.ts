// What a soak must show, by its figures: memory that is flat, nothing left behind, every run and
// every stream to its end.

/** After a collection of garbage. */
export type Memory = { readonly rss: number; readonly heap: number; readonly runs: number }
/** With no load on the server. */
export type Rest = Memory & {
  readonly handles: Readonly<Record<string, number>>
  readonly resources: Readonly<Record<string, number>>
  readonly listeners: Readonly<Record<string, number>>
  readonly streams: number
  readonly driven: number
  readonly files: number
}
export type Soaked = {
  readonly samples: readonly Memory[]
  readonly before: Rest
  readonly after: Rest
  readonly started: number
  readonly done: number
  readonly failed: number
  readonly broke: number
  readonly charged: number
  readonly held: number
  readonly errors: string
}
export type Row = {
  readonly what: string
  readonly measured: string
  readonly rule: string
  readonly holds: boolean
}

export const MiB = 1 << 20
export const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? NaN
export const percentile = (list: readonly number[], share: number): number =>
  list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(share * list.length))] ?? NaN

/**
 * The median of the last fifth against that of the second, after garbage collections. The first
 * fifth is left out: caches fill, the engine compiles. What is allowed is what a steady server
 * sways by: the heap by a twentieth and 4 MiB, resident memory by a tenth and 16 MiB, for it also
 * holds what the allocator keeps and what SQLite caches.
 */
const slack = {
  heap: { share: 0.05, bytes: 4 * MiB },
  rss: { share: 0.1, bytes: 16 * MiB },
} as const

function flat(samples: readonly Memory[], field: 'heap' | 'rss', what: string): Row {
  const fifth = Math.floor(samples.length / 5)
  const of = (nth: number) => samples.slice(nth * fifth, nth === 4 ? undefined : (nth + 1) * fifth)
  const [second, last] = [of(1), of(4)]
  const early = median(second.map(one => one[field]))
  const late = median(last.map(one => one[field]))
  const { share, bytes } = slack[field]
  const most = early * (1 + share) + bytes
  const runs = median(last.map(one => one.runs)) - median(second.map(one => one.runs))
  return {
    what,
    rule: `≤ ${(most / MiB).toFixed(1)} MiB (second fifth + ${share * 100} % + ${bytes / MiB} MiB)`,
    holds: late <= most,
    measured:
      `${(early / MiB).toFixed(1)} → ${(late / MiB).toFixed(1)} MiB over ${runs} runs ` +
      `(${((late - early) / Math.max(1, runs)).toFixed(0)} bytes each)`,
  }
}

const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, count) => total + count, 0)
/** `passing` kinds come and go by themselves; of each other kind there may be `sway` more. */
function same(
  what: string,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
  { passing = [], sway = 0 }: { passing?: readonly string[]; sway?: number } = {},
): Row {
  const grown = Object.entries(after)
    .filter(([kind, count]) => !passing.includes(kind) && count > (before[kind] ?? 0) + sway)
    .map(([kind, count]) => `${kind} ${before[kind] ?? 0} → ${count}`)
  return {
    what,
    measured: `${sum(before)} → ${sum(after)}${grown.length > 0 ? ` (${grown.join(', ')})` : ''}`,
    rule: sway === 0 ? 'of no kind more than before' : `of no kind more than ${sway} more`,
    holds: grown.length === 0,
  }
}
/**
 * The engine's clocks (beat, sweep, retention, the queue's) listen while they sleep, and not while
 * they act.
 */
const clocks = 4
/** Bytes: names of runs' owners, compiled statements and code are kept, all bounded. */
const kept = 16 * MiB
const exactly = (what: string, measured: number, expected: number): Row => ({
  what,
  measured: String(measured),
  rule: String(expected),
  holds: measured === expected,
})

export const verdict = ({
  samples,
  before,
  after,
  started,
  done,
  failed,
  broke,
  charged,
  held,
  errors,
}: Soaked): Row[] => [
  flat(samples, 'heap', 'heap after collection'),
  flat(samples, 'rss', 'resident memory after collection'),
  {
    what: 'heap when the load is gone',
    measured: `${(before.heap / MiB).toFixed(1)} → ${(after.heap / MiB).toFixed(1)} MiB`,
    rule: `not ${kept / MiB} MiB more`,
    holds: after.heap - before.heap <= kept,
  },
  same('handles when the load is gone', before.handles, after.handles),
  // Timers and callbacks of the moment; a timer that stays would hold its handle's listeners or its
  // run.
  same('active resources when the load is gone', before.resources, after.resources, {
    passing: ['Timeout', 'Immediate'],
  }),
  same('event listeners when the load is gone', before.listeners, after.listeners, {
    sway: clocks,
  }),
  exactly('open streams when the load is gone', after.streams, 0),
  exactly('runs driven when the load is gone', after.driven, 0),
  exactly('runs that ended as done, with every token', done, started),
  exactly('runs that did not', failed, 0),
  exactly('streams that broke off', broke, 0),
  exactly('credits charged: one a run', charged, started),
  exactly('credits still held', held, 0),
  {
    what: 'errors that the server logged',
    measured: errors === '' ? 'none' : errors.slice(0, 300).replaceAll('\n', ' '),
    rule: 'none',
    holds: errors === '',
  },
]
