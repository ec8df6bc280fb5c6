// A function fits on a screen. A factory holds its methods, so each of them counts as one line.
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { functionLinesOf } from './function-lines.ts'
import { complain, tooLong } from './support/rules/complaints.ts'

const linesMax = 60

const home = resolve(import.meta.dirname, '..')
const sources = globSync('{kernel,ports,adapters,plugins,contracts}/**/*.ts', { cwd: home })
  .filter(file => !file.includes('node_modules') && !file.endsWith('.test.ts'))
  .sort()
const functions = functionLinesOf(home, sources).map(({ file, line, name, lines }) => ({
  key: `${file} ${name}`,
  at: `${file}:${line} ${name}`,
  lines,
}))

test('no function has more than 60 lines of its own', () => {
  assert.ok(functions.length > 1000, 'the functions are found')
  complain(tooLong(functions, linesMax))
})

test('a function inside another counts as one of its lines', () => {
  const folder = mkdtempSync(join(tmpdir(), 'function-lines-'))
  const example = [
    'export function createX() {',
    '  const y = [1].map(',
    '    one => one + 1,',
    '  )',
    '  return {',
    '    first(',
    '      value: number,',
    '    ) {',
    '      return [y, value]',
    '    },',
    '  }',
    '}',
  ]
  try {
    writeFileSync(join(folder, 'x.ts'), example.join('\n'))
    const found = functionLinesOf(folder, ['x.ts']).map(
      ({ line, name, lines }) => `${line} ${name} ${lines}`,
    )
    assert.equal(found.sort(), ['1 createX 8', '3 createX.y 1', '6 createX.first 5'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()
