import { test } from 'uvu'
import { searchKit } from '../../test/kit/search.ts'
import { memorySearch } from './memory.ts'

searchKit(test, 'memory', { place: async () => ({ open: async () => memorySearch() }), survives: false, lacks: { another: 'it is in one process' } })
test.run()
