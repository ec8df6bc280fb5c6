// The simulation finds bugs: each of these faults, planted into the source, must make it fail. And it does not fail without one.
import { spawn } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { faults } from './planted.ts'

const hunt = (name: string): Promise<string> => new Promise((resolve, reject) => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', new URL('hunt.ts', import.meta.url).pathname, name], { stdio: ['ignore', 'pipe', 'inherit'] }), parts: string[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part.toString()))
  child.on('error', reject).on('close', code => (code === 0 ? resolve(parts.join('')) : reject(new Error(`${name}: exit code ${code} ${parts.join('')}`))))
})

assert.ok(faults.length >= 10)
for (const { name } of faults) test(name, async () => {
  assert.match(await hunt(name), /^found after \d+ schedules/)
})

test.run()
