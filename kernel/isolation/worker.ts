// The thread's entry: imports the plugin, reports its manifest, and serves it when asked to.
import { parentPort, workerData } from 'node:worker_threads'
import { createModuleLoader } from '../module-loader.ts'
import { manifestOf, type Hello, type Start } from './manifest.ts'

const port = parentPort!
const start = workerData as Start

const hello = async (): Promise<Hello> => {
  const plugin = await createModuleLoader('thread').load({ entry: start.entry })
  // A description does not load what serving needs.
  return {
    manifest: manifestOf(plugin),
    items: start.serve ? await (await import('./worker-host.ts')).serve(port, plugin, start) : [],
  }
}
port.postMessage([
  'hello',
  await hello().catch((error: Error): Hello => ({ refused: error.message })),
])
