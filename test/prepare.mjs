// Before anything else, on whatever Node is there (20 or newer): installs what is needed, and makes sure that Node >= 24 is at hand.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const home = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..')
const node = join(home, 'node_modules', '.bin', 'node')
const lock = join(home, 'package-lock.json'), installed = join(home, 'node_modules', '.package-lock.json')
const stop = sentence => {
  process.stderr.write(`\n${sentence}\n`)
  process.exit(1)
}
const versionOf = command => Number(/^v(\d+)/.exec(spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? 0)

if (!existsSync(installed) || statSync(lock).mtimeMs > statSync(installed).mtimeMs) {
  process.stdout.write('Installing the packages (once) …\n')
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: home, stdio: 'inherit' })
  if (done.status !== 0) stop('npm could not install the packages; its message stands above.')
}
if (versionOf(node) < 24 && versionOf('node') < 24) {
  stop(`This project runs on Node 24 or newer; here is ${process.version}, and the packaged Node 24 was not set up, because install scripts are disabled.
Either allow that one script:   npm rebuild node --ignore-scripts=false
or put Node 24 on your PATH, and run the same command again.`)
}
