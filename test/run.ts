// Runs every test file in a process of its own, some at a time, each within a time limit, and ends
// with the sum.
//   node test/run.ts [part of a path …]
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { join, resolve } from 'node:path'

const home = resolve(import.meta.dirname, '..')
/**
 * Two cores are busy with three, for many wait; beside servers, and with several processes in a
 * file, two are enough.
 */
const besideServers = process.env['MONGODB_URL'] !== undefined
const atOnce = besideServers ? 2 : 3
/** An open handle would keep a file for ever; the slowest file takes less than half of this. */
const fileMsMax = 360_000

/** Each file's process reads the platform's sources: one compiles them for all. */
const compiled = join(home, 'node_modules/.cache/agent-platform-tests')

type Result = {
  file: string
  passed: number
  failed: number
  skipped: number
  ms: number
  output: string
}

const count = (output: string, word: string) =>
  Number(
    new RegExp(`^\\s*${word}:\\s+(\\d+)`, 'm').exec(output.replace(/\u001b\[\d+m/g, ''))?.[1] ??
      Number.NaN,
  )

function runFile(file: string): Promise<Result> {
  return new Promise(done => {
    const started = performance.now()
    const parts: string[] = []
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      cwd: home,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { NODE_COMPILE_CACHE: compiled, ...process.env, NODE_ENV: 'test' },
    })
    const late = setTimeout(() => {
      parts.push(`\n${file} did not end within ${fileMsMax} ms: something is still open.\n`)
      child.kill('SIGKILL')
    }, fileMsMax)
    child.stdout.on('data', (part: Buffer) => parts.push(part.toString()))
    child.stderr.on('data', (part: Buffer) => parts.push(part.toString()))
    child.on('close', code => {
      clearTimeout(late)
      const output = parts.join('')
      const total = count(output, 'Total')
      const passed = count(output, 'Passed')
      const skipped = count(output, 'Skipped') || 0
      const ran = Number.isFinite(total) && total + skipped > 0
      // Those that are skipped are not among the total.
      const failed = ran ? total - passed : 1
      if (!ran) parts.push(`\n${file} ran no test.\n`)
      done({
        file,
        passed: ran ? passed : 0,
        failed: failed === 0 && code !== 0 ? 1 : failed,
        skipped,
        ms: performance.now() - started,
        output: parts.join(''),
      })
    })
  })
}

const wanted = process.argv.slice(2)
const files = globSync(['{kernel,ports,adapters,plugins,contracts,test}/**/*.test.ts'], {
  cwd: home,
})
  .filter(
    file =>
      !file.includes('node_modules') &&
      (wanted.length === 0 || wanted.some(part => file.includes(part))),
  )
  .sort()
const results: Result[] = []
const waiting = [...files]

await Promise.all(
  Array.from({ length: atOnce }, async (_, lane) => {
    // The longest come last by name, and are begun with; beside servers by one lane only, so that
    // two files of several processes seldom share the cores.
    const next = () => (besideServers && lane > 0 ? waiting.shift() : waiting.pop())
    for (let file = next(); file; file = next()) {
      const result = await runFile(file)
      results.push(result)
      const mark = result.failed === 0 ? 'ok  ' : 'FAIL'
      process.stdout.write(
        `${mark} ${file} ${result.passed} ` +
          `passed${result.skipped ? `, ${result.skipped} skipped` : ''} ` +
          `(${(result.ms / 1000).toFixed(1)} s)\n`,
      )
      if (result.failed > 0) process.stdout.write(`${result.output}\n`)
    }
  }),
)

const sum = (part: 'passed' | 'failed' | 'skipped') =>
  results.reduce((total, result) => total + result[part], 0)
if (results.length === 0) process.stdout.write('There is no such test file.\n')
const failed = sum('failed') + (results.length === 0 ? 1 : 0)
const skipped = sum('skipped')
process.stdout.write(
  `\n${sum('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
)
process.exitCode = failed > 0 ? 1 : 0
