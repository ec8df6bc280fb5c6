// Blobs in this process's memory, for tests: gone when it closes.
import { createHash } from 'node:crypto'
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import { abortable } from '../_shared/abortable.ts'
import { checkedOrganisation, checkedRange, isHash } from '../_shared/blob-names.ts'
import { closedFault, closable } from '../_shared/closable.ts'
import { wholeOption } from '../_shared/options.ts'

const serviceName = 'The blob store'
const bytesMaxUsual = 268_435_456
const readBytes = 65_536

export function memoryBlobs({
  bytesMax: storeBytesMax = bytesMaxUsual,
}: {
  bytesMax?: number
} = {}): BlobsEngine {
  const blobs = new Map<string, Buffer>()
  let stored = 0
  const { check, shut } = closable(serviceName)
  const closing = new AbortController()
  return {
    within(orgId) {
      check()
      const keyOf = (hash: string): string => `${orgId}/${hash}`
      checkedOrganisation(orgId)
      return {
        async put(content, { bytesMax = Infinity, signal } = {}) {
          check()
          const chunks: Uint8Array[] = []
          let bytes = 0
          for await (const chunk of abortable(content, [signal, closing.signal])) {
            bytes += chunk.length
            if (bytes > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
            if (stored + bytes > storeBytesMax) throw fault('STORAGE_FULL')
            // Copies the chunk, because the source may reuse its buffer.
            chunks.push(Uint8Array.from(chunk))
          }
          const whole = Buffer.concat(chunks)
          const hash = createHash('sha256').update(whole).digest('hex')
          if (!blobs.has(keyOf(hash))) {
            if (stored + bytes > storeBytesMax) throw fault('STORAGE_FULL')
            blobs.set(keyOf(hash), whole)
            stored += bytes
          }
          return { hash, bytes }
        },
        async *get(hash, { signal, ...range } = {}) {
          check()
          signal?.throwIfAborted()
          const { start, end } = checkedRange(range)
          const whole = isHash(hash) ? blobs.get(keyOf(hash)) : undefined
          if (whole === undefined) throw fault('NOT_FOUND', { what: 'blob' })
          const stop = Math.min(end, whole.length)
          for (let at = start; at < stop; at += readBytes) {
            signal?.throwIfAborted()
            check()
            yield Uint8Array.from(whole.subarray(at, Math.min(stop, at + readBytes)))
          }
        },
        async stat(hash) {
          check()
          const whole = blobs.get(keyOf(hash))
          return whole === undefined ? undefined : { hash, bytes: whole.length }
        },
        async remove(hash) {
          check()
          stored -= blobs.get(keyOf(hash))?.length ?? 0
          return blobs.delete(keyOf(hash))
        },
      }
    },
    async addresses({ after = '', limit }) {
      check()
      return [...blobs.keys()]
        .filter(address => address > after)
        .sort()
        .slice(0, limit)
    },
    async ping() {
      check()
    },
    async close() {
      if (!shut()) return
      closing.abort(closedFault(serviceName))
      blobs.clear()
    },
  }
}

export default defineAdapter<BlobsEngine>({
  port: 'blobs',
  scheme: 'memory',
  ephemeral: true,
  options: { bytes_max: `What it holds at most, in bytes; default ${bytesMaxUsual}.` },
  open: async ({ url }) => memoryBlobs({ bytesMax: wholeOption(url, 'bytes_max', bytesMaxUsual) }),
})
