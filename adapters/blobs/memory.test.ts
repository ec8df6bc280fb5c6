import { test } from 'uvu'
import { blobsKit } from '../../test/kit/blobs.ts'
import { memoryBlobs } from './memory.ts'

blobsKit(test, 'memory', {
  place: async () => ({ open: async () => memoryBlobs() }),
  survives: false,
  full: async () => memoryBlobs({ bytesMax: 10_000 }),
})
test.run()
