// The engine's timers: move the beats of leases, sweep, apply retention, and catch up the search
// index.
import type { KernelInfo, Broadcasting } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { RunsConfig } from '../config.ts'
import type { Driver } from './driver.ts'
import type { Retain } from '../retention/retention.ts'
import { cancelledTopic } from './remote-driver.ts'
import type { Transcripts } from '../sessions/transcripts.ts'

type Deps = {
  clock: Clock
  driver: Driver
  sweep: () => Promise<void>
  retain: Retain
  transcripts: Transcripts
  host: KernelInfo
  peers: Broadcasting
  config: RunsConfig
  log: Log
  signal: AbortSignal
  defer(undo: () => unknown): void
}

export function startTimers({
  clock,
  driver,
  sweep,
  retain,
  transcripts,
  host,
  peers,
  config,
  log,
  signal,
  defer,
}: Deps): void {
  const every = async (ms: number, name: string, act: () => Promise<void>) => {
    while (!signal.aborted) {
      await act().catch((error: unknown) => log('warn', name, { error }))
      await clock.sleep(ms, signal).catch(() => undefined)
    }
  }
  const work = () => {
    void every(Math.ceil(config.lease_ms / 3), 'beat', () => driver.heartbeat())
    // The sweep waits until this generation serves and the former one has stopped. Before that,
    // tools of other plugins are unknown, and the former generation sweeps, too.
    // The first sweep takes up at once the runs that the former generation released.
    void host.previousDrained().then(() => every(config.sweep_ms, 'sweep', sweep))
    void transcripts.begin().catch((error: unknown) => log('warn', 'search', { error }))
    // Not at once: a starting process has more urgent work. The random part spreads processes that
    // start together.
    void clock.sleep(config.retention_ms * (0.2 + 0.2 * clock.random()), signal).then(
      () =>
        void Promise.all([
          every(config.retention_ms, 'retention', retain),
          every(config.retention_ms, 'search', transcripts.catchUp),
        ]),
      () => undefined,
    )
  }
  defer(() => driver.close())
  if (host.role !== 'api') work()
  // This is a hint. Without it the driver sees the cancel at its next beat.
  defer(
    peers.subscribe(cancelledTopic, data =>
      driver.stop((data as { runId: string }).runId, 'cancelled'),
    ),
  )
}
