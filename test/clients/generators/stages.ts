// What the clients of one language have in common: how they are compiled, and how their journey is
// played.
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { npmCommand, run } from '../child.ts'
import type { Place, Stage } from '../client.ts'

/** What every journey does, in this order. It prints each step when it has checked the answers. */
const steps = [
  'sign in',
  'models',
  'balance',
  'begin',
  'events',
  'outcome',
  'runs since',
  'messages',
  'sessions',
  'pages',
  'upload',
  'not found',
  'bad request',
]

const journeys = join(import.meta.dirname, '..', 'journeys')
const copyJourney = (language: string, files: readonly string[], folder: string) => {
  for (const file of files) copyFileSync(join(journeys, language, file), join(folder, file))
}

/** A journey that left a step out has not passed. */
function compare(output: string): void {
  const did = output.trim().split('\n')
  if (did.join() !== steps.join())
    throw new Error(`it did: ${did.join(', ')}\nnot:    ${steps.join(', ')}`)
}

/**
 * The compiler makes CommonJS, which resolves imports without an ending as generated code has them.
 */
const tsconfig = {
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    target: 'es2023',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: [],
    module: 'nodenext',
    rootDir: '.',
    outDir: 'js',
  },
}

/** The generator's code lies in `generated`, and `<journey>.ts` beside it. */
export const typescriptStages = (journey: string): readonly Stage[] => [
  {
    name: 'compile',
    async run({ folder, tools }) {
      copyJourney('typescript', ['support.ts', `${journey}.ts`], folder)
      writeFileSync(join(folder, 'package.json'), '{}')
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({ ...tsconfig, include: ['*.ts', 'generated'] }),
      )
      symlinkSync(join(tools.node, 'node_modules'), join(folder, 'node_modules'), 'junction')
      await run(npmCommand(tools.node, 'tsc'), ['--project', folder], { cwd: folder })
    },
  },
  {
    name: 'journey',
    async run({ folder, env }) {
      compare(await run(process.execPath, [join('js', `${journey}.js`)], { cwd: folder, env }))
    },
  },
]

/** `packages`: what was generated, beside which `<journey>.py` lies. `settings`: of mypy. */
export const pythonStages = (
  journey: string,
  packages: readonly string[],
  settings: readonly string[] = [],
): readonly Stage[] => [
  {
    name: 'compile',
    async run({ folder, tools }) {
      copyJourney('python', ['support.py', `${journey}.py`], folder)
      // Other settings would empty the cache.
      const cache = join(dirname(tools.python), '..', 'mypy', journey)
      const own = ['support.py', `${journey}.py`]
      writeFileSync(
        join(folder, 'mypy.ini'),
        ['[mypy]', 'mypy_path = generated', ...settings].join('\n'),
      )
      await run(tools.python, ['-m', 'mypy', '--cache-dir', cache, ...own, ...packages], {
        cwd: folder,
      })
    },
  },
  {
    name: 'journey',
    async run({ folder, tools, env }) {
      compare(
        await run(tools.python, [`${journey}.py`], {
          cwd: folder,
          env: { ...env, PYTHONPATH: 'generated' },
        }),
      )
    },
  },
]

export const generate = (make: (place: Place, generated: string) => Promise<unknown>): Stage => ({
  name: 'generate',
  async run(place) {
    const generated = join(place.folder, 'generated')
    mkdirSync(generated)
    await make(place, generated)
  },
})
