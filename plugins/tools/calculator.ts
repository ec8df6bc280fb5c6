// The tool `calculator`.
import { Type as t, type Static } from 'typebox'
import type { Tool } from '../runs/api.ts'
import type { ArithmeticPool } from './arithmetic-pool.ts'

const Arguments = t.Object(
  {
    expression: t.String({
      minLength: 1,
      maxLength: 500,
      description: 'Such as (1299.90 * 3 - 50) / 1.19, round(2/3, 4) or sqrt(2)^3.',
    }),
  },
  { additionalProperties: false },
)

export const calculator = ({ arithmetic }: { arithmetic: ArithmeticPool }): Tool => ({
  name: 'calculator',
  effect: 'none',
  parameters: Arguments,
  description:
    'Reckons exactly in decimals: + - * / % (remainder) ^ and parentheses; abs sqrt cbrt ' +
    'exp ln log10 log2 log(x, base) floor ceil trunc round(x, places) sin cos tan asin ' +
    'acos atan (radians) min max sum mean factorial; pi and e. Use it for every sum that ' +
    'is not trivial.',
  run: async (args, { userId, signal }) => ({
    content: await arithmetic.reckon((args as Static<typeof Arguments>).expression, {
      userId,
      signal,
    }),
  }),
})
