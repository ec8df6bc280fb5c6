// Programs that the checks start: each has a time limit, and a failure tells its last lines.
import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'

export type Child = {
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
  /** Exit codes that are an answer; all others are a failure. */
  readonly codes?: readonly number[]
  readonly msMax?: number
}

const lastLines = (text: string) => text.trim().split('\n').slice(-15).join('\n')
/** Tools that report their use, or look for updates, are told not to. */
const quiet = {
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  NO_COLOR: '1',
  FORCE_COLOR: '0',
}

/** Runs a program to its end and answers its standard output. */
export const run = (
  command: string,
  args: readonly string[],
  { cwd, env = {}, codes = [0], msMax = 180_000 }: Child,
): Promise<string> =>
  new Promise((done, failed) => {
    execFile(
      command,
      args,
      {
        cwd,
        // Scripts of npm packages ask for `node`: it shall be the one that runs this program.
        env: {
          ...process.env,
          PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
          ...quiet,
          ...env,
        },
        timeout: msMax,
        killSignal: 'SIGKILL',
        maxBuffer: 64 << 20,
      },
      (error, stdout, stderr) => {
        if (error === null || codes.includes(Number(error.code))) return done(stdout)
        const said = lastLines(`${stdout}\n${stderr}`)
        if (error.code === 'ENOENT') return failed(new Error(`there is no ${command} here`))
        const why = error.killed
          ? `it took longer than ${msMax / 1000} s`
          : `it ended with ${error.code}`
        failed(new Error(`${command} ${args[0] ?? ''}: ${why}\n${said}`.trim()))
      },
    )
  })

/** A command that an npm package of `test/clients/package.json` brings. */
export const npmCommand = (node: string, name: string) => join(node, 'node_modules', '.bin', name)
