// Runs test files in a few processes side by side. Most files share a process with others; a file
// that says so has one of its own.
import { fork, type ChildProcess } from 'node:child_process'
import { join, resolve } from 'node:path'
import type { TestFile } from './files.ts'
import { endOfFile, type Answered, type Asked } from './protocol.ts'

export type Result = Answered & {
  readonly output: string
  /** Milliseconds by the wall clock. */
  readonly ms: number
}

const home = resolve(import.meta.dirname, '../..')
/** Each process reads the platform's sources: one compiles them for all. */
const compiled = join(home, 'node_modules/.cache/agent-platform-tests')
/** An open handle would keep a file for ever; the slowest takes less than half of this. */
const fileMsMax = { test: 120_000, proof: 400_000 } as const
/** What modules and their caches may come to, before a process is replaced. */
const rssMibMax = 700

type Lane = {
  run(file: TestFile): Promise<Result>
  end(): Promise<void>
}

function openLane(): Lane {
  const child: ChildProcess = fork(join(import.meta.dirname, 'lane.ts'), {
    cwd: home,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { NODE_COMPILE_CACHE: compiled, ...process.env, NODE_ENV: 'test' },
  })
  let output = ''
  let written = () => {}
  const take = (part: Buffer) => {
    output += part.toString()
    if (output.includes(endOfFile)) written()
  }
  child.stdout!.on('data', take)
  child.stderr!.on('data', take)
  // What it wrote on its way out comes after its end.
  const lastWords = async () => new Promise(said => setTimeout(said, 200))
  const ended = new Promise<void>(left => child.once('exit', () => left()))
  return {
    async run({ file, kind }) {
      const began = performance.now()
      output = ''
      const whole = new Promise<void>(read => {
        written = read
      })
      const late = setTimeout(() => {
        output += `\n${file} did not end within ${fileMsMax[kind]} ms.\n`
        child.kill('SIGKILL')
      }, fileMsMax[kind])
      const heard = Promise.withResolvers<Answered>()
      // A test may send words of its own.
      const hear = (message: unknown) => {
        const answer = message as Answered | null
        if (answer?.file === file) heard.resolve(answer)
      }
      child.on('message', hear)
      if (child.connected) child.send({ file } satisfies Asked)
      const failure = {
        file,
        passed: 0,
        failed: 1,
        skipped: 0,
        bootMs: 0,
        startMs: 0,
        cpuMs: 0,
        rssMib: Number.POSITIVE_INFINITY,
      }
      const answer = await Promise.race([
        Promise.all([heard.promise, whole]).then(([one]) => one),
        ended.then(() => lastWords()).then(() => failure),
      ])
      clearTimeout(late)
      child.off('message', hear)
      return {
        ...answer,
        ms: performance.now() - began,
        output: output.replace(endOfFile, ''),
      }
    },
    async end() {
      if (child.connected) child.disconnect()
      const late = setTimeout(() => child.kill('SIGKILL'), 5000)
      await ended
      clearTimeout(late)
    },
  }
}

/** Calls `told` with each result as it comes. */
export async function runFiles(
  files: readonly TestFile[],
  lanes: number,
  told: (result: Result) => void,
): Promise<void> {
  const waiting = [...files]
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      let shared: Lane | undefined
      for (let file = waiting.shift(); file; file = waiting.shift()) {
        const lane = file.ownProcess ? openLane() : (shared ??= openLane())
        const result = await lane.run(file)
        told(result)
        if (!file.ownProcess && result.rssMib < rssMibMax) continue
        await lane.end()
        if (lane === shared) shared = undefined
      }
      await shared?.end()
    }),
  )
}
