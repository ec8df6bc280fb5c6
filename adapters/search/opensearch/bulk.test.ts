// Writes that the service takes only in part, or only in parts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ownOrg, scriptedOpenSearch } from '../../../test/support/databases/scripted-opensearch.ts'

const busy = { type: 'rejected_execution_exception', reason: 'the queue is full' }

test('passages that the service had no room for are sent again, and only they', async () => {
  const sent: string[][] = []
  await using server = await scriptedOpenSearch(({ path, body }) => {
    if (!path.endsWith('_bulk')) return undefined
    const ids = body
      .trim()
      .split('\n')
      .filter((_, at) => at % 2 === 0)
      .map(line => (JSON.parse(line) as { index: { _id: string } }).index._id)
    sent.push(ids)
    if (sent.length === 1) return [429, { error: busy, status: 429 }]
    const full = (id: string) => sent.length === 2 && id !== 'a'
    return [
      200,
      {
        errors: true,
        items: ids.map(id => ({
          index: full(id)
            ? { _index: 'i-000001', _id: id, status: 429, error: busy }
            : id === 'bad'
              ? {
                  _index: 'i-000001',
                  _id: id,
                  status: 400,
                  error: {
                    type: 'mapper_parsing_exception',
                    reason: 'secret words of the customer',
                  },
                }
              : { _index: 'i-000001', _id: id, status: 201, result: 'created' },
        })),
      },
    ]
  })
  const engine = await server.open()
  const { indexed, errors } = await engine.within(ownOrg).index(
    'c',
    ['a', 'b', 'bad'].map(id => ({ id, text: id })),
  )
  assert.equal(sent, [
    ['a', 'b', 'bad'],
    ['a', 'b', 'bad'],
    ['b', 'bad'],
  ])
  assert.equal(
    [indexed, errors.map(({ at, id, error }) => [at, id, error.code])],
    [2, [[2, 'bad', 'UNAVAILABLE']]],
  )
  assert.not.match(errors[0]!.error.message, /secret/)
  await engine.close()
})

test('a load is cut into calls, of which few are under way at once', async () => {
  await using server = await scriptedOpenSearch(() => undefined)
  const engine = await server.open()
  const passages = engine.within(ownOrg)
  await passages.index(
    'c',
    Array.from({ length: 1000 }, (_, at) => ({ id: `${at}`, text: 'x'.repeat(8000) })),
  )
  assert.ok(server.count('_bulk') >= 8, `${server.count('_bulk')} calls`)
  for (const { body } of server.calls) assert.ok(body.length < 5_000_000)
  await engine.close()
})

test.run()
