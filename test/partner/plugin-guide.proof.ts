// docs/a-plugin-in-five-minutes.md, done word by word.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { followed } from './followed.ts'

test('everything in the guide is as it says', async () => {
  const count = await followed(
    'docs/a-plugin-in-five-minutes.md',
    'npm install --no-save ../agent-platform-*.tgz',
  )
  assert.ok(
    count('output') >= 7 && count('serve') === 1 && count('stop') === 1,
    'it shows what is said, and its server was started and ended',
  )
})

test.run()
