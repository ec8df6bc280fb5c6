// The entry: gives a server the memory habits of a server, then runs the command line.
//   node kernel/main.ts start | <command> [options] | --help
import { join, resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'

/**
 * Small nurseries collect a request's garbage early and cheaply, instead of growing to 32 MiB a
 * thread. They begin at their full size. A nursery that grows from 1 MiB copies the objects of
 * living requests more often, and moves them to the old space.
 */
const flags = [
  '--min-semi-space-size=8',
  '--max-semi-space-size=8',
  '--disable-warning=ExperimentalWarning',
]
const mark = 'AGENT_PLATFORM_TUNED'

/**
 * Executes the program again in the same process with these flags and cached compiled code, so that
 * the type stripper need not load. Windows cannot do this and goes on as it is.
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

// A reader that closed the pipe (`| head`) has read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : 1),
)
tune(process.argv.slice(2))
// These nurseries are for the main thread. Threads that start later go by limits of their own.
for (const flag of ['--min-semi-space-size=0', '--max-semi-space-size=0']) setFlagsFromString(flag)
const { run } = await import('./cli/run.ts')
await run(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
