import { execFileSync } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { clockKit } from '../../test/conformance/clock.ts'
import { systemClock } from './system.ts'

clockKit(test, 'system', { open: async () => systemClock(), pass: (_, ms) => setTimeout(ms) })

test('a sleeper does not keep the process alive', () => {
  const source =
    `import { systemClock } from '${new URL('./system.ts', import.meta.url)}'; ` +
    'systemClock().sleep(60_000)'
  execFileSync(process.execPath, ['--input-type=module', '-e', source], { timeout: 10_000 })
})
test('a pause longer than a timer can hold does not end at once', async () => {
  const controller = new AbortController()
  const ended = systemClock()
    .sleep(2 ** 31 + 1000, controller.signal)
    .then(
      () => 'woke',
      () => 'aborted',
    )
  await setTimeout(20)
  controller.abort()
  assert.is(await ended, 'aborted')
})
test.run()
