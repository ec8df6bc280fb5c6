// A thread that lives for one backup: it reads a snapshot while the writer goes on.
import { chmodSync, closeSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { failureOf } from '../../_shared/sqlite/failures.ts'
import type { Started } from '../../_shared/sqlite/protocol.ts'

const { from, to } = workerData as { readonly from: string; readonly to: string }

function copy(): void {
  const source = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  try {
    source.prepare('VACUUM INTO ?').run(to)
  } finally {
    source.close()
  }
  chmodSync(to, 0o600)
  const file = openSync(to, 'r+')
  fsyncSync(file)
  closeSync(file)
}

try {
  copy()
  parentPort!.postMessage({} satisfies Started)
} catch (error) {
  parentPort!.postMessage({ refusal: failureOf(error) } satisfies Started)
}
