// Ports opened on one database file share its one thread: the storage engine carries it under a key
// that only these adapters know.
import { join, resolve } from 'node:path'
import { fault } from '#contracts/faults.ts'
import type { AdapterContext } from '#ports/adapter.ts'
import { wholeOption } from '../options.ts'
import type { Writer } from './writer.ts'

// Registered, so that a reloaded copy of this module finds what an earlier one left.
export const writerKey: unique symbol = Symbol.for('agent-platform.sqlite.writer') as never
export type SharesWriter = { readonly [writerKey]: Writer }

export const sharedWriter = (engine: unknown): Writer | undefined =>
  (engine as Partial<SharesWriter> | undefined)?.[writerKey]

/**
 * `sqlite:` is platform.db in DATA_DIR; else `sqlite:./data/platform.db`, relative to the working
 * directory, or `sqlite:///var/lib/platform.db`.
 */
export function pathOf({ url, dataDir }: Pick<AdapterContext, 'url' | 'dataDir'>): string {
  const path = decodeURIComponent(url.pathname)
  if (path === '' && url.host === '') return join(dataDir, 'platform.db')
  if (path.endsWith('/') || url.host !== '')
    throw fault('UNAVAILABLE', {
      what: 'The database',
      why: 'its URL is written sqlite:./folder/file.db or sqlite:///folder/file.db',
    })
  return resolve(path)
}

/** What a sqlite: URL may say beside its path. */
export const sqliteOptions = {
  bytes_max: 'A quota for the file, in bytes, 0 for none; default 0.',
}
export const quotaOf = ({ url }: Pick<AdapterContext, 'url'>): number =>
  wholeOption(url, 'bytes_max', 0)
