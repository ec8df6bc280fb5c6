// Search in one SQLite file: FTS5 for words, exact cosine for vectors. One thread starts with the
// first call, a second one with the first query.
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type AdapterContext } from '#ports/adapter.ts'
import type { SearchEngine } from '#ports/search.ts'
import { closable } from '../_shared/closable.ts'
import { searchEngine } from './sqlite/engine.ts'
import type { Thread } from './sqlite/threads.ts'
import { quotaOf, sqliteOptions } from '../_shared/sqlite/sharing.ts'

const serviceName = 'The search index'

type Threads = {
  readonly writer: Thread
  readonly reader: () => Promise<Thread>
  /** A running thread. */
  readonly any: () => Thread | Promise<Thread>
  readonly close: () => Promise<void>
}

/**
 * `sqlite:` is search.db in DATA_DIR; else `sqlite:./folder/search.db`, relative to the working
 * directory, or `sqlite:///folder/search.db`.
 */
function pathOf({ url, dataDir }: Pick<AdapterContext, 'url' | 'dataDir'>): string {
  const path = decodeURIComponent(url.pathname)
  if (path === '' && url.host === '') return join(dataDir, 'search.db')
  if (path.endsWith('/') || url.host !== '')
    throw fault('UNAVAILABLE', {
      what: serviceName,
      why: 'its URL is written sqlite:./folder/file.db or sqlite:///folder/file.db',
    })
  return resolve(path)
}

async function start(path: string, bytesMax: number): Promise<Threads> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // Loaded at the first call.
  const [{ lock }, { startThread }] = await Promise.all([
    import('../_shared/sqlite/database.ts'),
    import('./sqlite/threads.ts'),
  ])
  const held = lock(path)
  let reading: Promise<Thread> | undefined
  try {
    // The writer makes the file that the reader reads.
    const writer = await startThread({ path, bytesMax, role: 'write' })
    return {
      writer,
      reader: () =>
        (reading ??= startThread({ path, bytesMax, role: 'read' }).catch((error: unknown) => {
          reading = undefined
          throw error
        })),
      any: () => reading ?? writer,
      async close() {
        await (await reading?.catch(() => undefined))?.close()
        await writer.close()
        held.close()
      },
    }
  } catch (error) {
    held.close()
    throw error
  }
}

export function sqliteSearch({
  path,
  bytesMax = 0,
}: {
  readonly path: string
  readonly bytesMax?: number
}): SearchEngine {
  const { check, shut } = closable(serviceName)
  let threads: Promise<Threads> | undefined
  let closing: Promise<void> | undefined
  const started = (): Promise<Threads> => {
    check()
    // After a failed start, the next call tries again.
    threads ??= start(path, bytesMax).catch((error: unknown) => {
      threads = undefined
      throw error
    })
    return threads
  }
  const end = async () => {
    const running = await threads?.catch(() => undefined)
    await running?.close()
  }
  const reader = async (): Promise<Thread> => (await started()).reader()
  const isAbsent = () => threads === undefined && !existsSync(path)
  const engine = searchEngine({
    check,
    write: async (call, options) => (await started()).writer.call(call, options),
    read: async (call, options) => (await reader()).call(call, options),
    // A ping must not start threads that no call has needed yet.
    ping: async () => void (await (await (await threads)?.any())?.call(['collections', ''])),
    close: () => (shut() ? (closing = end()) : closing!),
  })
  return {
    ...engine,
    async addresses(page) {
      check()
      return isAbsent() ? [] : engine.addresses(page)
    },
    async backup(to) {
      if (isAbsent()) return
      await (await reader()).call(['backup', to])
    },
  }
}

export default defineAdapter<SearchEngine>({
  port: 'search',
  scheme: 'sqlite',
  exclusive: true,
  options: sqliteOptions,
  open: async opening => sqliteSearch({ path: pathOf(opening), bytesMax: quotaOf(opening) }),
})
