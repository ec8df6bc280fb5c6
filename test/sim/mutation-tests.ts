// The simulation finds bugs: each fault, planted into the source of a process of its own, must make
// it fail. And it does not fail without one.
import { spawn } from 'node:child_process'
import { mutants } from './mutants.ts'

const runMutant = (name: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        new URL('mutation-test.ts', import.meta.url).pathname,
        name,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const parts: string[] = []
    child.stdout.on('data', (part: Buffer) => parts.push(part.toString()))
    child
      .on('error', reject)
      .on('close', code =>
        resolve(code === 0 ? parts.join('') : `exit code ${code} ${parts.join('')}`),
      )
  })

/** Hunts every planted fault, so many at a time. A sentence for each that was not found. */
export async function runMutationTests(
  atOnce: number,
): Promise<{ readonly planted: number; readonly missed: readonly string[] }> {
  const waiting = mutants.map(({ name }) => name)
  const missed: string[] = []
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        const said = await runMutant(name)
        if (!said.startsWith('found after ')) missed.push(`${name}: ${said.trim()}`)
      }
    }),
  )
  return { planted: mutants.length, missed }
}
