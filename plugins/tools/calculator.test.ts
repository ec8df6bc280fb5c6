// The calculator as a tool: what the model is told of it, and its arguments.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createValidator } from '../../kernel/validation/validate.ts'
import { functionNames } from './arithmetic.ts'
import { calculator as calculatorOf } from './calculator.ts'
import { arithmeticPools } from '../../test/support/arithmetic.ts'

const { undo, reckonerOf } = arithmeticPools()
const calculator = calculatorOf({ arithmetic: reckonerOf() })

test('the model is told of every function', () => {
  for (const name of functionNames)
    assert.match(calculator.description, new RegExp(`\\b${name}\\b`), `the model knows ${name}`)
})

test('its arguments are one expression of bounded length', async () => {
  const check = createValidator().check('body', calculator.parameters)
  for (const args of [
    {},
    { expression: 1 },
    { expression: '' },
    { expression: '1'.repeat(501) },
    { expression: '1', more: 1 },
    '1',
  ])
    assert.throws(
      () => check(args),
      (error: Error) => /expression|more|body/.test(error.message),
    )
  assert.equal(
    await calculator.run(
      check({ expression: '0.1+0.2' }) as never,
      { userId: 'ann', signal: new AbortController().signal } as never,
    ),
    { content: '0.3' },
  )
  assert.is(calculator.effect, 'none')
})

test.after(async () => {
  await Promise.all(undo.map(one => one()))
})
test.run()
