// The parts of one process: it answers requests to the plugins that serve, exchanges them and stops
// them.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpReport, HttpServer } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Tracer } from '#ports/traces.ts'
import type { Engines } from './engines.ts'
import { createDispatcher } from './routing/dispatch.ts'
import type { Installation, RunnableCommand } from './commands.ts'
import { createExchange } from './exchange/exchange.ts'
import type { Broadcasting } from './kernel-ports.ts'
import { createKernelInfo } from './kernel-info.ts'
import { stayAwake } from './loading/awake.ts'
import { stopUndoMsMax } from './loading/steps.ts'
import type { RegistryService } from './management/plugin-registry.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { createRequestLog } from './routing/request-log.ts'
import { createOpenStreams } from './routing/open-streams.ts'
import { Authenticators, PluginFiles, type Authenticator, type Scope } from './plugin.ts'
import { httpSettings, type Environment, type Settings } from './settings/settings.ts'
import { createTokenResolver } from './scoped-ports/token-resolver.ts'

type KernelParts = {
  readonly env: Environment
  readonly settings: Settings
  readonly engines: Engines
  readonly log: Log
  readonly strict?: boolean
  readonly peers: Broadcasting
  /** The plugin registry, for plugins that may change the set. */
  readonly pluginRegistry: () => RegistryService
}

export function createKernel(parts: KernelParts) {
  const { settings, engines, log, pluginRegistry, strict = false } = parts
  const clock = engines.engine<Clock>('clock')
  const http = engines.engine<HttpServer>('http')
  const metrics = createMetrics(
    engines.metrics(() =>
      [...exchange.table().instances.values()].flatMap(({ plugin }) =>
        Object.keys(plugin.jobs ?? {}),
      ),
    ),
  )
  let serving = false
  const streams = createOpenStreams({ clock })
  const host = createKernelInfo({
    streams,
    role: settings.ROLE,
    clock,
    engines,
    metrics: metrics.registry,
    table: () => exchange.table(),
    serving: () => serving,
  })
  const { handle, refuse } = createDispatcher({
    authenticators: () =>
      (exchange.table().points.get(Authenticators.id)?.items ?? []) as readonly Authenticator[],
    isEnabled: (plugin, orgId) => pluginRegistry().isEnabled(plugin, orgId),
    limiter: engines.engine<RateLimiter>('limits'),
    traces: engines.engine<Tracer>('traces'),
    engines,
    streams,
    log,
    strict,
  })
  /** The same list each time, unless plugins are limited to organisations. */
  const itemsFor = (point: string, scope: Scope | undefined): readonly unknown[] => {
    const { items = [], plugins = [] } = exchange.table().points.get(point) ?? {}
    return pluginRegistry().isLimited()
      ? items.filter((_, i) => pluginRegistry().isEnabled(plugins[i]!, scope?.orgId))
      : items
  }

  const tokens = createTokenResolver({ ...parts, clock, host, itemsFor })
  const exchange = createExchange({ ...parts, strict, metrics, tokens, handle })

  return {
    host,
    /** Bounds a step of loading in time. */
    within: exchange.within,
    applyPlugins: exchange.applyPlugins,
    check: exchange.check,
    /** Counts a plugin that was refused before a change began. */
    refused: metrics.refused,
    /** Fetches a plugin's missing file; false where no plugin has it. */
    async fetchFile(entry: string): Promise<boolean> {
      const { items = [] } = exchange.table().points.get(PluginFiles.id) ?? {}
      for (const files of items as readonly PluginFiles[])
        if (await files.fetchFile(entry)) return true
      return false
    },
    async listen(): Promise<{ port: number }> {
      metrics.gaugeStreams(() => http.openStreams())
      const logRequest = createRequestLog(settings, log, id => exchange.table().endpoints.get(id))
      const report: HttpReport = entry => {
        metrics.report(entry)
        logRequest?.(entry)
      }
      const listening = await http.listen(httpSettings(settings), { report, refuse })
      serving = true
      return listening
    },
    /** What the plugins offer on the command line; `installation` is for those with `offline`. */
    commands: (installation?: Installation): Map<string, RunnableCommand> =>
      new Map(
        [...exchange.table().instances.values()].flatMap(instance =>
          Object.entries(instance.plugin.commands ?? {}).map(
            ([name, one]): [string, RunnableCommand] => {
              const run = (deps: never, given: unknown) =>
                'offline' in one
                  ? one.run(installation!, given as never)
                  : one.run(deps, given as never)
              return [name, { ...one, run: given => instance.within({}, deps => run(deps, given)) }]
            },
          ),
        ),
      ),
    /** What the stop under way is waiting for. */
    left: exchange.waitingFor,
    /**
     * Stops: not ready at once, streams end (clients resume elsewhere), calls and jobs drain, then
     * everything is undone in reverse.
     */
    async stop(): Promise<void> {
      const sleep = stayAwake()
      serving = false
      const until = clock.monotonic() + settings.DRAIN_MS
      const undoneUntil = until + stopUndoMsMax
      exchange.refuseChanges(undoneUntil)
      await exchange.waitFor('port:http', () => http.close(), until)
      await exchange.retireAll(until, undoneUntil)
      const closedUntil = clock.monotonic() + stopUndoMsMax
      await exchange.waitFor('the ports', () => engines.close(), closedUntil)
      sleep()
    },
  }
}
export type Kernel = ReturnType<typeof createKernel>
