// The tools are installed once for each state of the files that name their versions, outside the
// checkout.
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pythonWith } from '../servers/python.ts'
import { installed } from '../servers/server.ts'
import { run } from './child.ts'
import type { Tools } from './client.ts'

/** What is downloaded may take longer than what works with it. */
const msMax = 600_000
const here = (name: string) => join(import.meta.dirname, name)
const generator = {
  version: '7.25.0',
  sha256: '41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae',
}

async function npmPackages(): Promise<string> {
  const lock = readFileSync(here('package-lock.json'))
  return installed('clients-npm', lock, async folder => {
    for (const name of ['package.json', 'package-lock.json'])
      copyFileSync(here(name), join(folder, name))
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: folder,
      msMax,
    })
  })
}

async function python(): Promise<string> {
  const made = await pythonWith('clients-python', here('requirements.txt'), { hashes: false })
  if ('why' in made) throw new Error(made.why)
  return made.python
}

/** Maven gets it from wherever its own settings say that Maven Central is. */
async function generatorJar(): Promise<string> {
  await run('java', ['-version'], { cwd: import.meta.dirname })
  const name = `openapi-generator-cli-${generator.version}.jar`
  const folder = await installed('clients-jar', JSON.stringify(generator), async made => {
    await run(
      'mvn',
      [
        '--quiet',
        '--batch-mode',
        'dependency:copy',
        `-Dartifact=org.openapitools:openapi-generator-cli:${generator.version}`,
        `-DoutputDirectory=${made}`,
      ],
      { cwd: made, msMax },
    )
    const found = createHash('sha256')
      .update(readFileSync(join(made, name)))
      .digest('hex')
    if (found !== generator.sha256) throw new Error(`${name} has the checksum ${found}`)
  })
  return join(folder, name)
}

const makers: Readonly<Record<keyof Tools, { title: string; make(): Promise<string> }>> = {
  node: { title: 'the npm packages', make: npmPackages },
  python: { title: 'Python 3 with the packages of PyPI', make: python },
  jar: { title: 'Java and, at first, Maven', make: generatorJar },
}

/** Each tool that is asked for, or why it cannot be had here. */
export async function toolsFor(
  needs: ReadonlySet<keyof Tools>,
): Promise<{ tools: Partial<Tools>; missing: ReadonlyMap<keyof Tools, string> }> {
  const tools: Partial<Record<keyof Tools, string>> = {}
  const missing = new Map<keyof Tools, string>()
  for (const need of needs) {
    const { title, make } = makers[need]
    try {
      tools[need] = await make()
    } catch (error) {
      missing.set(need, `it takes ${title}: ${(error as Error).message}`)
    }
  }
  return { tools, missing }
}
