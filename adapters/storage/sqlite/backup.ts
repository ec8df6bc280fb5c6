// A copy of a database while it runs.
import { open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { fault } from '#contracts/faults.ts'
import { failureOf, raise } from '../../_shared/sqlite/failures.ts'
import type { Failure, Started } from '../../_shared/sqlite/protocol.ts'
import type { Writer } from '../../_shared/sqlite/writer.ts'

const copyUrl = () => new URL(import.meta.url.replace(/backup\.(ts|js)[^/]*$/, 'copy.$1'))

function copy(from: string, to: string): Promise<Failure | undefined> {
  const thread = new Worker(copyUrl(), { workerData: { from, to } })
  return new Promise((fulfil, reject) => {
    thread.once('message', ({ refusal }: Started) => fulfil(refusal))
    thread.once('error', error => fulfil(failureOf(error)))
    thread.once('exit', () =>
      reject(fault('UNAVAILABLE', { what: 'The backup', why: 'its thread ended' })),
    )
  })
}

/**
 * Writes everything that was applied before the call into one file. The file gets its name only
 * when it is complete. In a folder it gets the database's name.
 */
export async function backUp(writer: Writer, path: string): Promise<void> {
  await writer.durable()
  const folder = await stat(path).then(
    found => found.isDirectory(),
    () => false,
  )
  const target = folder ? join(path, basename(writer.path)) : resolve(path)
  const partial = `${target}.partial`
  await rm(partial, { force: true })
  const failure = await copy(writer.path, partial)
  if (failure) {
    await rm(partial, { force: true })
    throw raise(failure)
  }
  await rename(partial, target)
  const entry = await open(dirname(target))
  await entry.sync().finally(() => entry.close())
}
