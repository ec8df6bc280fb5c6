import { test } from 'uvu'
import { scopedSearch } from '../../test/conformance/scoped.ts'
import { searchKit } from '../../test/conformance/search.ts'
import { memorySearch } from './memory.ts'

for (const [name, face] of [
  ['memory', memorySearch],
  ['memory, of a tenant', () => scopedSearch(memorySearch())],
] as const)
  searchKit(test, name, {
    place: async () => ({ open: async () => face() }),
    survives: false,
    lacks: { another: 'it is in one process' },
  })
test.run()
