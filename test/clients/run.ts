// Proves that public linters and generators can use our OpenAPI document, as a server serves it.
// Each generated client is compiled and goes on a journey against that server.
//   npm run test:clients                 all of them
//   npm run test:clients -- hey redocly  those with such a part in their name
// A client whose tools cannot be had here is skipped; in CI (CI=true) that is a failure.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../conformance/plugin/server.ts'
import type { Client, Place, Tools } from './client.ts'
import { datamodelCodeGenerator } from './generators/datamodel-code-generator.ts'
import { heyApi } from './generators/hey-api.ts'
import { openapiFetch } from './generators/openapi-fetch.ts'
import { openapiGenerators } from './generators/openapi-generator.ts'
import { openapiPythonClient } from './generators/openapi-python-client.ts'
import { linters } from './linters.ts'
import { toolsFor } from './tools.ts'

const clients: readonly Client[] = [
  ...linters,
  openapiFetch,
  heyApi,
  ...openapiGenerators,
  openapiPythonClient,
  datamodelCodeGenerator,
]

const say = (text: string) => process.stdout.write(`${text}\n`)
const indented = (text: string) => text.replaceAll(/^/gm, '    ')
const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

/** True when all of its stages pass. A stage that fails ends it. */
async function passes({ name, stages }: Client, place: Place): Promise<boolean> {
  const took: string[] = []
  for (const stage of stages) {
    const began = performance.now()
    try {
      await stage.run(place)
    } catch (error) {
      say(`FAIL ${name}: ${stage.name}\n${indented((error as Error).message)}`)
      say(indented(`Its folder is kept: ${place.folder}`))
      return false
    }
    took.push(`${stage.name} ${seconds(began)}`)
  }
  say(`ok   ${name} (${took.join(', ')})`)
  return true
}

const parts = process.argv.slice(2)
const unknown = parts.filter(part => !clients.some(({ name }) => name.includes(part)))
for (const part of unknown) say(`There is no such client: ${part}.`)
const chosen = clients.filter(
  ({ name }) => parts.length === 0 || parts.some(part => name.includes(part)),
)

const began = performance.now()
const { tools, missing } = await toolsFor(new Set(chosen.flatMap(({ needs }) => needs)))
say(`The tools took ${seconds(began)}.`)

const sum = { passed: 0, failed: unknown.length, skipped: 0 }
const work = mkdtempSync(join(tmpdir(), 'agent-platform-clients-'))
const server = await startServer()
let kept = false
try {
  // What a server serves is what its users generate from.
  const served = await server.call('GET', '/openapi.json')
  const document = join(work, 'openapi.json')
  writeFileSync(document, served.text)
  const committed = join(import.meta.dirname, '..', '..', 'contracts', 'openapi.json')
  if (JSON.stringify(served.body) !== JSON.stringify(JSON.parse(readFileSync(committed, 'utf8')))) {
    say('FAIL the server serves another document than contracts/openapi.json')
    sum.failed += 1
  }
  for (const [index, client] of chosen.entries()) {
    const why = client.needs.map(need => missing.get(need)).find(reason => reason !== undefined)
    if (why !== undefined) {
      const required = process.env['CI'] === 'true'
      say(`${required ? 'FAIL' : 'skip'} ${client.name}: ${why}`)
      sum[required ? 'failed' : 'skipped'] += 1
      continue
    }
    const folder = join(work, String(index))
    mkdirSync(folder)
    const { api_key } = await server.account()
    const env = { BASE_URL: server.root, API_KEY: api_key }
    const passed = await passes(client, { document, folder, tools: tools as Tools, env })
    sum[passed ? 'passed' : 'failed'] += 1
    kept ||= !passed
  }
} finally {
  await server.stop()
}
if (!kept) rmSync(work, { recursive: true, force: true })
say(`It took ${seconds(began)}.`)
say(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
process.exitCode = sum.failed === 0 ? 0 : 1
