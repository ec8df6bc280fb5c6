// Does here what operators chose at other processes: by their hints, and by a look now and then.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Broadcasting } from '../kernel-ports.ts'
import type { DesiredStateStore } from './desired-state.ts'
import type { RegistryService } from './plugin-registry.ts'

/** Milliseconds between two reads of other processes' choices, in case a hint is lost. */
const choicesMs = 15_000

type Following = {
  readonly pluginRegistry: RegistryService
  readonly choices: DesiredStateStore
  readonly peers: Broadcasting
  readonly clock: Clock
  readonly log: Log
}
/** Follows them until the signal. */
export function followOthers(
  { pluginRegistry, choices, peers, clock, log }: Following,
  signal: AbortSignal,
): void {
  const failed = (error: unknown) => log('error', 'plugins.reconciled', { error })
  const reconcile = () =>
    void pluginRegistry
      .reconcile()
      .then(
        ({ changes }) => changes.length > 0 && log('info', 'plugins.reconciled', { changes }),
        failed,
      )
  peers.subscribe('plugins', what =>
    what === null
      ? reconcile()
      : void pluginRegistry.followBack((what as { rolledBack: string }).rolledBack).catch(failed),
  )
  // Looks for choices of other processes, because a hint may be lost.
  void (async () => {
    for (;;) {
      await clock.sleep(choicesMs, signal)
      if ((await choices.refresh().catch(() => false)) || pluginRegistry.isBehind()) reconcile()
    }
  })().catch(() => undefined)
}
