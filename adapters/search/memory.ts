// The embedded search index in this process's memory, for tests: gone when it closes.
import { DatabaseSync } from 'node:sqlite'
import { defineAdapter } from '#ports/adapter.ts'
import type { SearchEngine } from '#ports/search.ts'
import { closable } from '../_shared/closable.ts'
import { adopt } from './sqlite/database.ts'
import { searchEngine } from './sqlite/engine.ts'
import { createIndex } from './sqlite/collections.ts'
import { serviceName, type Call } from './sqlite/threads.ts'
import { failureOf, raise } from '../_shared/sqlite/failures.ts'

export function memorySearch(): SearchEngine {
  const { check, shut } = closable(serviceName)
  let opened:
    | {
        readonly db: DatabaseSync
        readonly calls: Readonly<Record<string, (...args: readonly unknown[]) => Promise<unknown>>>
      }
    | undefined
  let last: Promise<unknown> = Promise.resolve()
  const open = () => {
    const db = new DatabaseSync(':memory:')
    adopt(db)
    return { db, calls: createIndex(db) as never }
  }
  const run = (
    call: Call,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<unknown> => {
    // Copies the call, as sending it to a thread would. Calls run one after the other.
    const [kind, ...args] = structuredClone(call) as [string, ...unknown[]]
    const done = last.then(async () => {
      check()
      signal?.throwIfAborted()
      try {
        return structuredClone(await (opened ??= open()).calls[kind]!(...args))
      } catch (error) {
        throw raise(failureOf(error))
      }
    })
    last = done.catch(() => undefined)
    return done
  }
  return searchEngine({
    check,
    write: run,
    read: run,
    ping: async () => undefined,
    async close() {
      if (!shut()) return
      await last
      opened?.db.close()
    },
  })
}

export default defineAdapter<SearchEngine>({
  port: 'search',
  scheme: 'memory',
  ephemeral: true,
  open: async () => memorySearch(),
})
