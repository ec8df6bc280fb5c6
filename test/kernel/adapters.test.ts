// Which adapter serves a port that was not named.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { chosenFor } from '../../kernel/adapters.ts'
import { readSettings } from '../../kernel/settings/settings.ts'

test('files, limits and search follow a storage that can hold them, else lie apart', () => {
  const chosen = (env: Record<string, string>) =>
    (['blobs', 'limits', 'search'] as const).map(
      port => chosenFor(port, readSettings(env), []).value,
    )
  assert.equal(chosen({}), ['file:', 'memory:', 'sqlite:'])
  assert.equal(chosen({ STORAGE_URL: 'sqlite:./else/platform.db' }), [
    'file:',
    'memory:',
    'sqlite:',
  ])
  const shared = 'mongodb://a.example/db'
  assert.equal(chosen({ STORAGE_URL: shared }), [shared, shared, shared])
  assert.equal(
    chosen({ STORAGE_URL: shared, SEARCH_URL: 'opensearch://b.example/p' })[2],
    'opensearch://b.example/p',
  )
})

test.run()
