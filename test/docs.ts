// Writes docs/extension-points/ from the types and comments of the sources, and docs/settings.md
// from the schemas of the settings. `test/docs.test.ts` fails when what is committed differs.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { extensionPages, folder } from './docs/pages.ts'
import { settingsFile, settingsPage } from './docs/settings.ts'
import { home } from './docs/source.ts'

const pages = await extensionPages()
const into = join(home, folder)
rmSync(into, { recursive: true, force: true })
mkdirSync(into, { recursive: true })
for (const [name, text] of pages) writeFileSync(join(into, name), text)
writeFileSync(join(home, settingsFile), await settingsPage())
process.stdout.write(`${folder} is written: ${pages.size} pages; ${settingsFile} too.\n`)
