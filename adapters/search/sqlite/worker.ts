// A thread of the embedded search index: one writes, one reads, and a long query stops neither the
// process nor the writer.
import { parentPort, workerData } from 'node:worker_threads'
import { failureOf } from '../../_shared/sqlite/failures.ts'
import { openIndex } from './database.ts'
import { createIndex } from './collections.ts'
import type { Answer, Call } from './threads.ts'

const port = parentPort!
const post = (answer: Answer) => port.postMessage(answer)
try {
  const db = openIndex(workerData as Parameters<typeof openIndex>[0])
  const calls: Readonly<Record<string, (...args: never[]) => Promise<unknown>>> = {
    ...createIndex(db),
    backup: async (path: string) => void db.prepare('VACUUM INTO ?').run(path),
  }
  port.on('message', ([kind, ...args]: Call | ['close']) => {
    if (kind === 'close') {
      db.close()
      port.close()
      return
    }
    calls[kind]!(...(args as never[])).then(
      value => post({ value }),
      (error: unknown) => post({ failure: failureOf(error) }),
    )
  })
  post({ value: undefined })
} catch (error) {
  post({ failure: failureOf(error) })
}
