// Programs from PyPI: a virtual environment for a list of packages. Servers give theirs hashes.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installed, lastLine } from './server.ts'

/** The interpreter of an environment with what the file lists; `why` when it cannot be made. */
export async function pythonWith(
  name: string,
  requirements = join(import.meta.dirname, `${name}.txt`),
  { hashes = true } = {},
): Promise<{ readonly python: string } | { readonly why: string }> {
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 300_000 })
  try {
    const folder = await installed(name, readFileSync(requirements), made => {
      run('python3', '-m', 'venv', made)
      run(
        join(made, 'bin', 'python'),
        '-m',
        'pip',
        'install',
        '--quiet',
        '--disable-pip-version-check',
        ...(hashes ? ['--require-hashes'] : []),
        '--only-binary',
        ':all:',
        '-r',
        requirements,
      )
    })
    return { python: join(folder, 'bin', 'python') }
  } catch (error) {
    return { why: `it could not be installed from PyPI (${lastLine(error)})` }
  }
}
