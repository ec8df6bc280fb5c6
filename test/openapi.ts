// Writes contracts/openapi.json from the contracts of every plugin; --check fails when the
// committed one differs.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startServer } from './conformance/plugin/server.ts'

const path = join(resolve(import.meta.dirname, '..'), 'contracts/openapi.json')
const server = await startServer()
const text = `${JSON.stringify((await server.call('GET', '/openapi.json')).body, null, 1)}\n`
await server.stop()

if (!process.argv.includes('--check')) {
  writeFileSync(path, text)
  process.stdout.write(`${path} is written.\n`)
} else if (readFileSync(path, 'utf8') !== text) {
  process.stderr.write(
    'contracts/openapi.json is not what the contracts say. Run: npm run openapi\n',
  )
  process.exitCode = 1
}
