// Runs a program of this repository on whatever Node is there (20 or newer). It installs what is
// needed first, and uses Node >= 24.
//   node kernel/launch.mjs <program.ts> [arguments]
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const home = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const lock = join(home, 'package-lock.json')
const installed = join(home, 'node_modules', '.package-lock.json')
const stop = sentence => {
  process.stderr.write(`\n${sentence}\n`)
  process.exit(1)
}
const isRecent = command =>
  Number(
    /^v(\d+)/.exec(spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? 0,
  ) >= 24

if (!existsSync(installed) || statSync(lock).mtimeMs > statSync(installed).mtimeMs) {
  process.stdout.write('Installing the packages (once) …\n')
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: home,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  })
  if (done.status !== 0) stop('npm could not install the packages; its message stands above.')
}

const node = [join(home, 'node_modules', 'node', 'bin', 'node'), process.execPath].find(isRecent)
if (!node) {
  stop(
    `This project runs on Node 24 or newer. Here is ${process.version}, and the Node 24 that ` +
      'comes with the packages was not set up, because install scripts are disabled.\n' +
      'Either allow that one script:   npm rebuild node --ignore-scripts=false\n' +
      'or put Node 24 on your PATH. Then run the same command again.',
  )
}

const child = spawn(node, ['--disable-warning=ExperimentalWarning', ...process.argv.slice(2)], {
  cwd: home,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` },
})
// npm runs this in a shell, which ends by a signal without handing it on: that it has gone is as
// good as the signal.
const shell = process.ppid
if (process.env.npm_lifecycle_event !== undefined)
  setInterval(() => process.ppid === shell || child.kill('SIGTERM'), 500).unref()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(signal ? 1 : code))
