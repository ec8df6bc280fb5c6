// What is written into the search index, and how often.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import { readEvents, startServer } from '../../../test/conformance/plugin/server.ts'
import { SearchProgresses } from '../collections.ts'

const found = { items: [{ id: 'conversations', after: '', done: true }] }

test('where nothing was said before there was an index, nothing is written twice', async () => {
  const engine = memoryStorage(systemClock())
  const server = await startServer({
    given: { storage: engine },
    // The backfill begins after 0.2 to 0.4 of this time.
    env: { RUNS_RETENTION_MS: '5000', RUNS_SEARCH_WAIT_MS: '0' },
  })
  try {
    const { token } = await server.account()
    const { body } = await server.call('POST', '/chat', { token, body: { message: 'early' } })
    await readEvents(await server.stream(token, (body as { run_id: string }).run_id))
    await new Promise(resolve => setTimeout(resolve, 2500))
    assert.equal(await engine.find(SearchProgresses), found)
  } finally {
    await server.stop()
  }
})
test.run()
