// What the runner must not take for a pass.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { TestFile } from './files.ts'
import { reaching } from './files.ts'
import { runFiles, type Result } from './pool.ts'

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
test.run()
