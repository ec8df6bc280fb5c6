// The disk of the simulated machines: what is on it, and what was applied but not synced.
import { ledgerOn } from '#adapters/billing/ledger.ts'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import {
  EventBytes,
  Runs,
  SearchProgresses,
  SearchRemovals,
  Sessions,
} from '../../plugins/runs/collections.ts'
import { ToolInvocations } from '../../plugins/runs/tools/audit-log.ts'

export const writes = {
  storage: ['insert', 'insertMany', 'update', 'updateMany', 'remove', 'removeMany'],
  eventlog: ['append', 'trim', 'remove'],
} as const
export const reads = { storage: ['get', 'find', 'count'], eventlog: ['read', 'bounds'] } as const
type Write = {
  readonly port: 'storage' | 'eventlog'
  readonly method: string
  readonly args: readonly unknown[]
}

/**
 * What is on disk, and what was applied but not synced: the machine that dies loses a part of the
 * latter, the last first.
 */
export async function createDisk() {
  let written: Write[] = []
  let safe = 0
  let engines = await blank()
  let heads = new Map<string, number>()
  async function blank(): Promise<{ storage: StorageEngine; eventlog: EventlogEngine }> {
    const storage = memoryStorage({} as never)
    for (const one of [
      Runs,
      Sessions,
      EventBytes,
      ToolInvocations,
      SearchRemovals,
      SearchProgresses,
    ])
      await storage.define(one as never)
    await ledgerOn(storage, {} as never)
    return { storage, eventlog: memoryEventlog() }
  }
  const act = ({ port, method, args }: Write) =>
    (engines[port] as unknown as Record<string, (...args: unknown[]) => unknown>)[method]!(...args)
  return {
    engines: () => engines,
    async write(one: Write): Promise<unknown> {
      const done = await act(one)
      written.push(one)
      return done
    },
    async sync(): Promise<void> {
      safe = written.length
      heads = new Map()
      for (const stream of new Set(
        written.filter(({ port }) => port === 'eventlog').map(({ args }) => args[0] as string),
      ))
        heads.set(stream, (await engines.eventlog.bounds(stream)).last)
    },
    /** How far the stream is on disk. */
    head: (stream: string) => heads.get(stream) ?? 0,
    unsafe: () => written.length - safe,
    /** The machine died: `kept` of the writes that were not synced made it. */
    async lose(kept: number): Promise<void> {
      written = written.slice(0, safe + kept)
      engines = await blank()
      for (const one of written) await act(one)
    },
  }
}
