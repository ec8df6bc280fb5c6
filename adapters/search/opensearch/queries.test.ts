import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ownOrg, scriptedOpenSearch } from '../../../test/support/databases/scripted-opensearch.ts'

test('what only a part of the shards would say is not asked for', async () => {
  const asked: string[] = []
  await using server = await scriptedOpenSearch(({ path }, { url }) => {
    if (path.endsWith('_search')) asked.push(url!)
    return path.endsWith('_count')
      ? [200, { count: 0, _shards: { total: 2, successful: 1, failed: 1 } }]
      : undefined
  })
  const engine = await server.open()
  assert.is(await engine.within(ownOrg).count('c'), 1)
  assert.ok(
    asked.length === 1 && asked[0]!.includes('allow_partial_search_results=false'),
    asked.join(),
  )
  await engine.close()
})

test.run()
