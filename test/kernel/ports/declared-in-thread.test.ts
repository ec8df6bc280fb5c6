// A plugin in a thread reaches of the ports what it declares, as in the process.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ledger } from '#ports/billing.ts'
import { endServers, startServer } from '../../conformance/plugin/server.ts'
import { refusal } from './guest.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-declared-'))

test("a thread obeys the same rules, and knows none of the platform's names", async () => {
  const write = (name: string, more: string) => {
    mkdirSync(join(home, name), { recursive: true })
    const path = join(home, name, 'plugin.mjs')
    const source = `import { definePlugin } from 'agent-platform/plugin'
import { Billing } from 'agent-platform/ports/billing'
import { JobQueue } from 'agent-platform/ports/queue'
const options = { type: 'object', properties: { org: { type: 'string' } } }
const present = { key: 'k', amount: 7, reason: 'a present' }
const command = run => ({ summary: 'x', options, run })
export default definePlugin({
  name: '${name}', version: '1.0.0', kernel: '^1.0.0', uses: { billing: Billing, queue: JobQueue },
  ${more} commands: {
    '${name} credit': command(({ billing }, { org }) => billing.credit(org, present)),
    '${name} enqueue': command(({ queue }) => queue.enqueue('files.parse', {})),
  } })`
    writeFileSync(path, source)
    return path
  }
  const server = await startServer()
  const { org_id: org } = await server.account(10)
  const isolated = { memory_mb: 64, stall_ms: 10_000 }
  const run = (name: string) => server.kernel.commands().get(name)!.run({ org })
  await server.pluginRegistry.load(write('far', ''), { isolated })
  assert.match(await refusal(() => run('far credit')), /far does not declare that it adds credits/)
  assert.match(await refusal(() => run('far enqueue')), /far does not declare the job files\.parse/)
  await server.pluginRegistry.load(write('giver', `may: { credit: ['a present'] },`), { isolated })
  await run('giver credit')
  assert.is((await server.engine<Ledger>('billing').balance(org)).balance, 17)
  for (const how of [{}, { isolated }])
    assert.match(
      await refusal(() => server.pluginRegistry.load(write('posing', `names: 'unprefixed',`), how)),
      /posing asks for names without its own before them/,
    )
  await server.stop()
})

test.after(async () => {
  await endServers()
  rmSync(home, { recursive: true, force: true })
})
test.run()
