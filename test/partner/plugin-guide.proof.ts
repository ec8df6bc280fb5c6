// docs/a-plugin-in-five-minutes.md, done word by word in an empty folder by somebody who has the
// packed platform and Node.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { follow } from '../support/guide/guide.ts'
import { freePort } from '../support/process.ts'
import { installPlatform, packPlatform, quiet, repository } from './packed.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-guide-'))
/** Done once for all tests that need it. */
const install = 'npm install --no-save ../agent-platform-*.tgz'

test('everything in the guide is as it says', async () => {
  await packPlatform(home)
  const port = String(await freePort())
  const followed = await follow(join(repository, 'docs/a-plugin-in-five-minutes.md'), {
    cwd: home,
    replace: {
      [install]: `ln -s ${await installPlatform()} node_modules`,
      'localhost:8080': `localhost:${port}`,
    },
    env: {
      ...quiet,
      npm_config_loglevel: 'error',
      npm_config_prefer_offline: 'true',
      PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
      PORT: port,
      HOST: '127.0.0.1',
    },
  })
  assert.ok(
    followed.some(({ text }) => text.includes('ln -s ')),
    'the guide installs the platform',
  )
  const count = (word: string) => followed.filter(({ words }) => word in words).length
  assert.ok(
    count('output') >= 7 && count('serve') === 1 && count('stop') === 1,
    'it shows what is said, and its server was started and ended',
  )
})

test.after(() => rmSync(home, { recursive: true, force: true }))
test.run()
