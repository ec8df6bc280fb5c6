// The entry: gives a server the memory habits of a server, then runs the command line.
//   node kernel/main.ts start | <command> [options] | --help
import { join, resolve } from 'node:path'

/**
 * Small nurseries: what a request leaves behind is collected soon, at little cost, instead of
 * growing to 32 MiB a thread first. They begin at that size: in one that grows from 1 MiB, what
 * requests under way hold is copied more often, and moves among what is old.
 */
const flags = [
  '--min-semi-space-size=8',
  '--max-semi-space-size=8',
  '--disable-warning=ExperimentalWarning',
]
const mark = 'AGENT_PLATFORM_TUNED'

/**
 * The same process goes on as one with these flags, and with compiled code kept, so that the type
 * stripper need not be loaded. No such call on Windows: there it starts as it is.
 */
function tune(args: readonly string[]): void {
  if (
    args[0] !== 'start' ||
    args.includes('--check') ||
    process.env[mark] !== undefined ||
    process.platform === 'win32' ||
    !process.execve
  )
    return
  const cache =
    process.env['NODE_COMPILE_CACHE'] ??
    join(resolve(import.meta.dirname, '..'), 'node_modules', '.cache', 'agent-platform')
  process.execve(
    process.execPath,
    [process.execPath, ...flags, ...process.execArgv, import.meta.filename, ...args],
    { ...process.env, [mark]: '1', NODE_COMPILE_CACHE: cache },
  )
}

// Whoever read has read enough (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : 1),
)
tune(process.argv.slice(2))
const { run } = await import('./cli/run.ts')
await run(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
