// What `npm pack` takes along, in dist/: JavaScript and declarations of the kernel, the ports, the
// adapters, the plugins and the kits. Node strips no types under node_modules.
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const home = resolve(import.meta.dirname, '..')
const dist = join(home, 'dist')
rmSync(dist, { recursive: true, force: true })
const { stdout, error } = spawnSync(
  process.execPath,
  [join(home, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
  { cwd: home, encoding: 'utf8' },
)
if (error) throw error
// Imports by `#name` keep their `.ts`: the map below leads them to the `.js`.
const wrong = stdout.split('\n').filter(line => line.trim() !== '' && !line.includes('TS2877'))
if (wrong.length > 0) throw new Error(wrong.join('\n'))
// npm makes a command of it, which a shell starts by itself.
const main = join(dist, 'kernel/main.js')
writeFileSync(main, `#!/usr/bin/env node\n${readFileSync(main, 'utf8')}`)
for (const example of ['hello-partner', 'hello-adapter'])
  cpSync(join(home, 'test/examples', example), join(dist, 'test/examples', example), {
    recursive: true,
  })
writeFileSync(
  join(dist, 'package.json'),
  `${JSON.stringify(
    {
      type: 'module',
      imports: {
        '#kernel': './kernel/index.js',
        ...Object.fromEntries(
          ['kernel', 'ports', 'contracts', 'adapters'].map(room => [
            `#${room}/*.ts`,
            `./${room}/*.js`,
          ]),
        ),
      },
    },
    null,
    1,
  )}\n`,
)
