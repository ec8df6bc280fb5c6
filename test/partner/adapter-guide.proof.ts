// docs/an-adapter-in-an-afternoon.md, done word by word.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { followed } from './followed.ts'

test('everything in the guide is as it says', async () => {
  const count = await followed(
    'docs/an-adapter-in-an-afternoon.md',
    'npm install ./agent-platform-*.tgz > /dev/null',
  )
  assert.ok(
    count('output') >= 10 && count('serve') === 2 && count('stop') === 2,
    'it shows what is said, and its server was started and ended twice',
  )
})

test.run()
