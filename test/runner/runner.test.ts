// What the runner must not take for a pass.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { overBudget } from './budgets.ts'
import { reaching, type TestFile } from './files.ts'
import { runFiles, type Result } from './pool.ts'
import { timingsOf } from './timings.ts'

const fixture = (name: string): TestFile => ({
  file: `test/runner/fixtures/${name}.ts`,
  kind: 'test',
  ownProcess: false,
})

test('a file fails by itself, and by no other', async () => {
  const found: Result[] = []
  const names = ['changing', 'talking', 'behind', 'guarding', 'unhandled', 'leaving']
  await runFiles(names.map(fixture), 1, result => void found.push(result))
  assert.equal(
    found.map(({ passed, failed }) => [passed, failed]),
    [
      [2, 0],
      [1, 0],
      [2, 1],
      [1, 1],
      [0, 1],
      [0, 1],
    ],
  )
  const [, , behind, guarding, unhandled] = found.map(({ output }) => output)
  assert.match(behind!, 'has tests behind its last test.run()')
  assert.match(guarding!, 'left open: uncaughtException')
  assert.match(unhandled!, 'nobody handles this')
})

test('a test that imports a deleted file reaches it', () => {
  const file = 'test/runner/runner.test.ts'
  const asked: TestFile[] = [{ file, kind: 'test', ownProcess: false }]
  assert.equal(reaching(asked, ['test/runner/pool.ts']), asked)
  assert.equal(reaching(asked, ['test/docs/none.ts']), [])
})

test('the timings and a budget that was exceeded tell the same figure', () => {
  const scale = 2
  const result = (file: string, cpuMs: number): Result => ({
    ...{ file, cpuMs, bootMs: 0, startMs: 0, ms: cpuMs },
    ...{ passed: 1, failed: 0, skipped: 0, rssMib: 0, output: '' },
  })
  const results = [
    result('plugins/one/a.test.ts', 13_000),
    result('plugins/one/b.test.ts', 5000),
    result('plugins/two/c.test.ts', 15_000),
  ]
  const files = results.map(({ file }): TestFile => ({ file, kind: 'test', ownProcess: false }))
  assert.equal(overBudget(results, files, scale), [
    'plugins/two/c.test.ts took 7.5 scaled seconds; its budget is 7',
    'plugins/one took 9.0 scaled seconds; its budget is 8',
  ])
  const lines = timingsOf(results, scale)
  assert.ok(lines.some(line => /^ +7\.5 .* plugins\/two\/c\.test\.ts$/.test(line)))
  assert.ok(lines.some(line => /^ +9\.0 +plugins\/one$/.test(line)))
  assert.ok(lines.some(line => /^ +16\.5 +together$/.test(line)))
})
test.run()
