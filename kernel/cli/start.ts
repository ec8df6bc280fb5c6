// `start`: serves until a signal or a defect ends the process.
import { flushCompileCache } from 'node:module'
import type { Clock } from '#ports/clock.ts'
import { boot } from '../boot.ts'
import { watchPlugins } from '../management/watch.ts'
import { serveAdmin } from './admin.ts'
import { print } from './answer.ts'
import { commandsOf } from './command-sets.ts'
import { defectCode, guardProcess } from './guard.ts'

/** Milliseconds that a stop may take beyond DRAIN_MS: runs are handed over, ports closed. */
const undoMsMax = 4000

export async function start(): Promise<void> {
  // A failure on the way, such as a taken port, closes what was opened, so that the process can
  // end.
  await using opened = new AsyncDisposableStack()
  const booted = await boot({ env: process.env, guarded: true })
  const { kernel, pluginRegistry, settings, log } = booted
  opened.defer(kernel.stop)
  opened.defer(await serveAdmin(settings.DATA_DIR, () => commandsOf(booted)))
  const { port } = await kernel.listen()
  const serving = opened.move()
  let stopping = false
  const stop = async (signal: string, code = 0) => {
    if (stopping) return
    stopping = true
    log('info', 'stopping', { signal })
    // Runs that are left behind are safe: another process or the next start recovers them.
    void booted
      .engine<Clock>('clock')
      .sleep(settings.DRAIN_MS + undoMsMax)
      .then(() => {
        log('error', 'stop.left', { what: kernel.left(), ms: settings.DRAIN_MS + undoMsMax })
        process.exit(1)
      })
    const undone = await serving.disposeAsync().then(
      () => true,
      (error: unknown) => log('error', 'stop.failed', { error }),
    )
    process.exit(undone ? code : code || 1)
  }
  // Guards the process to its end, because a stop can cause defects too.
  guardProcess({ log, blame: booted.blame, onDefect: () => void stop('defect', defectCode) })
  process.on('SIGTERM', () => void stop('SIGTERM')).on('SIGINT', () => void stop('SIGINT'))
  process.on(
    'SIGHUP',
    () =>
      void pluginRegistry.reconcile().then(
        ({ changes }) => log('info', 'plugins.reconciled', { changes }),
        (error: unknown) => log('error', 'plugins.reconciled', { error }),
      ),
  )
  if (settings.PLUGINS_WATCH)
    serving.defer(
      watchPlugins({
        pluginRegistry: pluginRegistry,
        clock: booted.engine('clock'),
        log,
        pluginsDir: settings.PLUGINS_DIR,
      }),
    )
  // Printed last, because whoever reads the line may stop the server at once.
  const scheme = settings.TLS_CERT ? 'https' : 'http'
  print(
    `Serving ${scheme}://localhost:${port}/api/v1 (read ${scheme}://localhost:${port}/api/v1/docs)`,
  )
  flushCompileCache()
}
