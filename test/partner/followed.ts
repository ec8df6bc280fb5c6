// A guide, done word by word in an empty folder by somebody who has the packed platform and Node.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import * as assert from 'uvu/assert'
import { follow } from '../support/guide/guide.ts'
import { freePort } from '../support/process.ts'
import { installPlatform, packPlatform, quiet, repository } from './packed.ts'

/**
 * Follows the guide; answers how many of its blocks carry a word. `install` is the guide's own line
 * that installs the platform, which is done once for all tests that need it.
 */
export async function followed(guide: string, install: string): Promise<(word: string) => number> {
  const home = mkdtempSync(join(tmpdir(), 'agent-platform-guide-'))
  try {
    await packPlatform(home)
    const port = String(await freePort())
    const blocks = await follow(join(repository, guide), {
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
      blocks.some(({ text }) => text.includes('ln -s ')),
      'the guide installs the platform',
    )
    return word => blocks.filter(({ words }) => word in words).length
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
