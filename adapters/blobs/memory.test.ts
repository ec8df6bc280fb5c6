import { test } from 'uvu'
import { blobsKit } from '../../test/conformance/blobs.ts'
import { scopedBlobs } from '../../test/conformance/scoped.ts'
import { memoryBlobs } from './memory.ts'

for (const [name, face] of [
  ['memory', memoryBlobs],
  ['memory, of a tenant', (options?: { bytesMax: number }) => scopedBlobs(memoryBlobs(options))],
] as const) {
  blobsKit(test, name, {
    place: async () => ({ open: async () => face() }),
    survives: false,
    full: async () => face({ bytesMax: 10_000 }),
  })
}
test.run()
