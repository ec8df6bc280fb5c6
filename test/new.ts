// npm run new plugin <name>: a copy of the tested template, under its own name, that passes its
// tests at once.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

const home = resolve(import.meta.dirname, '..')
const [what, name = ''] = process.argv.slice(2)
const stop = (sentence: string): never => {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
if (what !== 'plugin') stop('npm run new plugin <name>')
if (!/^[a-z][a-z0-9]{2,39}$/.test(name))
  stop(
    'A plugin is called by one word in the plural: 3 to 40 letters and digits, lower case ' +
      '("memos").',
  )

/** Where it goes instead of plugins/: for the test of this very command. */
const parent = process.env['NEW_PLUGIN_DIR'] ?? join(home, 'plugins')
const folder = join(parent, name)
if (existsSync(folder)) stop(`${relative(home, folder)} is there already.`)

const one = name.endsWith('s') ? name.slice(0, -1) : name
const capital = (word: string) => word[0]!.toUpperCase() + word.slice(1)
/** The template speaks of memos: in the plural and in the singular, with and without a capital. */
const renamed = (text: string) =>
  text
    .replaceAll('Memos', capital(name))
    .replaceAll('memos', name)
    .replaceAll('Memo', one === name ? `One${capital(name)}` : capital(one))
    .replaceAll('memo', one)

cpSync(join(home, 'test/examples/template'), folder, { recursive: true })
renameSync(join(folder, 'memos.test.ts'), join(folder, `${name}.test.ts`))
const kits = relative(folder, join(home, 'test/conformance'))
for (const file of readdirSync(folder))
  writeFileSync(
    join(folder, file),
    renamed(readFileSync(join(folder, file), 'utf8')).replace('../../conformance', kits),
  )
// Here a contract is the wire's truth, and lives with the others.
if (parent === join(home, 'plugins')) {
  renameSync(join(folder, 'contract.ts'), join(home, 'contracts', `${name}.ts`))
  writeFileSync(
    join(home, 'contracts', `${name}.ts`),
    readFileSync(join(home, 'contracts', `${name}.ts`), 'utf8').replace(
      "'#contracts/contract.ts'",
      "'./contract.ts'",
    ),
  )
  for (const file of ['plugin.ts', 'README.md'])
    writeFileSync(
      join(folder, file),
      readFileSync(join(folder, file), 'utf8')
        .replace("'./contract.ts'", `'#contracts/${name}.ts'`)
        .replace('`contract.ts`', `\`contracts/${name}.ts\``),
    )
}
process.stdout.write(`${relative(home, folder)} is made. Next:
  npm test -- plugins/${name}     its tests, which pass
  contracts/openapi/tags.ts       a line for its chapter, "${capital(name)}"
  npm run openapi                 the document with its operations
  npm start                       and read http://localhost:8080/api/v1/docs\n`)
