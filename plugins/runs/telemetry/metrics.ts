// What this process counts about runs. Every name is in OPERATIONS.md.
import { Counter, Gauge, Histogram } from 'prom-client'
import type { KernelInfo } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Run } from '../collections.ts'

/**
 * Appends of one followed run that are remembered. A reader that is further behind is measured
 * against the oldest of them.
 */
const marksMax = 64
type Marks = { readers: number; readonly at: { readonly seq: number; readonly ms: number }[] }
export type RunMetrics = ReturnType<typeof createRunMetrics>
type SlotCounts = {
  counts(): { readonly active: number; readonly waiting: number; readonly organisations: number }
  shed(): number
}
type Register = KernelInfo['metrics']
type Deps = {
  host: KernelInfo
  clock: Clock
  slots: SlotCounts
}

const counters =
  (register: Register) =>
  <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers: [register] })

/** Counts what waits and runs when somebody asks for it. */
function registerSlots(register: Register, slots: SlotCounts): void {
  const registers = [register]
  new Gauge({
    name: 'runs_active',
    help: 'Runs driven now (active), and those that wait for a place (waiting).',
    labelNames: ['state'],
    registers,
    collect() {
      const { active, waiting } = slots.counts()
      this.set({ state: 'active' }, active)
      this.set({ state: 'waiting' }, waiting)
    },
  })
  new Gauge({
    name: 'runs_organisations',
    help: 'Organisations with a run that is driven here.',
    registers,
    collect() {
      this.set(slots.counts().organisations)
    },
  })
  new Counter({
    name: 'runs_shed_total',
    help: 'Starts that were answered 429 because too many runs wait.',
    registers,
    collect() {
      this.reset()
      this.inc(slots.shed())
    },
  })
}

/** What retention removed of ended runs. */
function createRetentionMetrics(register: Register) {
  const counter = counters(register)
  const compacted = counter('runs_compacted_total', 'Ended runs whose logs were compacted.')
  const bytesBefore = counter(
    'runs_compacted_bytes_before_total',
    'Bytes of events in these logs before.',
  )
  const bytesAfter = counter(
    'runs_compacted_bytes_after_total',
    'Bytes of events in these logs after.',
  )
  const trimmed = counter(
    'runs_events_trimmed_total',
    'Events of ended runs that retention forgot.',
    'reason',
  )
  const freed = counter(
    'runs_events_freed_bytes_total',
    'Bytes of events that retention freed.',
    'reason',
  )
  return {
    compacted(bytes: number, keptBytes: number) {
      compacted.inc()
      bytesBefore.inc(bytes)
      bytesAfter.inc(keptBytes)
      freed.inc({ reason: 'compacted' }, Math.max(0, bytes - keptBytes))
    },
    trimmed(reason: 'age' | 'size', events: number, bytes: number) {
      trimmed.inc({ reason }, events)
      freed.inc({ reason }, bytes)
    },
  }
}

/** How soon events reach their readers. */
function createDeliveryMetrics(register: Register, clock: Clock) {
  const registers = [register]
  const firstEvent = new Histogram({
    name: 'runs_first_event_seconds',
    help: 'From the admission of a run that need not queue to its first event.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30],
    registers,
  })
  const lag = new Histogram({
    name: 'runs_stream_lag_seconds',
    help: 'From the append of events to their delivery to a reader, where one process does both.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  })
  const followed = new Map<string, Marks>()
  return {
    /** Measures the appends of a driver's journal. `fresh`: nothing of the run was shown before. */
    appends(
      { id, createdAt, placedAs }: Run,
      fresh: boolean,
    ): (last: number, records: readonly NewEvent[]) => void {
      let isFirst = fresh && placedAs === 'running'
      return (last, records) => {
        if (isFirst && records.some(({ hidden }) => !hidden)) {
          isFirst = false
          firstEvent.observe(Math.max(0, clock.now() - createdAt) / 1000)
        }
        const marks = followed.get(id)?.at
        if (!marks) return
        marks.push({ seq: last, ms: clock.monotonic() })
        if (marks.length > marksMax) marks.shift()
      }
    },
    /** Measures the deliveries to a reader until `stop`. */
    follow(runId: string): { delivered(last: number): void; stop(): void } {
      const marks = followed.get(runId) ?? { readers: 0, at: [] }
      marks.readers++
      followed.set(runId, marks)
      return {
        delivered(last) {
          const mark = marks.at.find(({ seq }) => seq >= last)
          if (mark) lag.observe((clock.monotonic() - mark.ms) / 1000)
        },
        stop() {
          if (--marks.readers === 0) followed.delete(runId)
        },
      }
    },
  }
}

export function createRunMetrics({ host: { metrics }, clock, slots }: Deps) {
  const counter = counters(metrics)
  const started = counter('runs_started_total', 'Runs that were admitted here.')
  const ended = counter('runs_ended_total', 'Runs that ended here, by status.', 'status')
  const takenOver = counter(
    'runs_takeovers_total',
    'Leases taken over from a driver that had fallen silent.',
  )
  const delivery = createDeliveryMetrics(metrics, clock)
  const retention = createRetentionMetrics(metrics)
  registerSlots(metrics, slots)
  return {
    started: () => started.inc(),
    ended: (status: string) => ended.inc({ status }),
    takenOver: () => takenOver.inc(),
    ...retention,
    ...delivery,
  }
}
