// The kit against the server that OPENSEARCH_URL names. Each check has a prefix of its own.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { opening } from '../../test/kit/opening.ts'
import { freshPrefix, openSearchUrl } from '../../test/kit/opensearch.ts'
import { searchKit } from '../../test/kit/search.ts'
import { systemClock } from '../clock/system.ts'
import { openSearch } from './opensearch.ts'

const secret = (name: string) => process.env[name]
if (openSearchUrl === undefined) test.skip('opensearch: the kit (OPENSEARCH_URL is not set)', () => undefined)
else {
  searchKit(test, 'opensearch', {
    survives: true, lacks: { exactStatistics: 'Lucene counts what was replaced until its segments are merged' },
    place: async () => {
      const { url } = freshPrefix()
      return { open: () => openSearch(opening(url.href, { clock: systemClock(), secret })) }
    },
  })
}

test('opensearch: where no server answers, a sentence says so, and neither address nor password is told', async () => {
  const error = await openSearch(opening('opensearch://127.0.0.1:1/x', { clock: systemClock(), secret: name => (name === 'OPENSEARCH_USERNAME' ? 'somebody' : 'hidden-word') })).then(() => undefined, (reason: Error) => reason)
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(error.message, 'The search service is not available: the connection failed.')
})

test('opensearch: a URL that cannot be meant is refused by its field', async () => {
  for (const [url, field] of [['opensearch:x', 'SEARCH_URL'], ['opensearch://user:word@host:9200/', 'SEARCH_URL'], ['opensearch://host:9200/A', 'SEARCH_URL'], ['opensearch://host:9200/a/b', 'SEARCH_URL'], ['opensearch://host:9200/?tls=maybe', 'tls'], ['opensearch://host:9200/?ca=/nowhere', 'ca'], ['opensearch://host:9200/?shards=0', 'shards'], ['opensearch://host:9200/?timeout_ms=1', 'timeout_ms']] as const) {
    const error = await openSearch(opening(url, { clock: systemClock() })).then(() => undefined, (reason: Error) => reason)
    assert.ok(hasCode(error, 'INVALID_FIELD') && error.values['field'] === field, `${url}: ${error?.message}`)
    assert.not.match(error.message, /word|user:/)
  }
})

test.run()
