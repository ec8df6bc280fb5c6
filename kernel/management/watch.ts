// For development: reloads plugins a moment after their files have changed.
import { watch, type FSWatcher } from 'node:fs'
import { resolve } from 'node:path'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { PluginRegistry } from '../kernel-ports.ts'
import { builtInDir, contractsDir } from '../loading/sources.ts'

/** Milliseconds without a change before a reload: an editor writes a file in several steps. */
const quietMs = 150

/** Watches the folders and answers the function that ends it. */
export function watchPlugins({
  pluginRegistry,
  clock,
  log,
  pluginsDir,
}: {
  pluginRegistry: PluginRegistry
  clock: Clock
  log: Log
  pluginsDir: string | undefined
}): () => void {
  const over = new AbortController()
  let changed = new AbortController()
  const settle = () => {
    changed.abort()
    changed = new AbortController()
    void clock
      .sleep(quietMs, AbortSignal.any([over.signal, changed.signal]))
      .then(() => pluginRegistry.reconcile())
      .then(
        ({ changes }) => changes.forEach(what => log('info', 'plugins.changed', { what })),
        () => undefined,
      )
  }
  const watchers = [
    builtInDir,
    contractsDir,
    ...(pluginsDir === undefined ? [] : [resolve(pluginsDir)]),
  ].map((folder): FSWatcher => watch(folder, { recursive: true }, settle))
  return () => {
    over.abort()
    for (const watcher of watchers) watcher.close()
  }
}
