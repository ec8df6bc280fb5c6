import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '../../clock/manual.ts'
import { tokens } from './tokens.ts'

const signs = [
  "'",
  '+',
  '#',
  '++',
  ' ',
  '-',
  '.',
  '_',
  '\0',
  '\n',
  '\x7f',
  'a',
  'B',
  '7',
  'C#',
  "d'",
]

test('a text in ASCII has the same words, in the same places, as beside other letters', () => {
  const { random } = manualClock()
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: 12 }, () => signs[Math.floor(random() * signs.length)]).join(
      '',
    )
    const beside = Array.from(tokens(`${text} é`))
    assert.equal(beside.pop()?.word, 'é')
    assert.equal(Array.from(tokens(text)), beside, JSON.stringify(text))
  }
  const long = "x'Y".repeat(200)
  assert.equal(Array.from(tokens(long)), Array.from(tokens(`${long} é`)).slice(0, -1))
})
test.run()
