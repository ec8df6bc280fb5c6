// Decimal arithmetic: jsep parses the expression and decimal.js calculates. Only the tables below
// exist, so that no expression reaches further.
import { Decimal } from 'decimal.js'
import jsep, { type CoreExpression, type Expression } from 'jsep'
import { fault, isFault } from '#contracts/faults.ts'

/**
 * Digits that are reckoned with; whole numbers up to this length are exact. Exponents end where
 * they would take long.
 */
const precision = 60
const exponentMax = 5000
/** Digits that are shown of what is no whole number; the others absorb what rounding leaves. */
const shown = 20
const factorialMax = 1000
/** Beyond this a turn cannot be told from the next one, and reducing it takes long. */
const angleMax = 1e15

/** Parts of one expression, and parts within parts. */
const partsMax = 1000
const depthMax = 300
/**
 * Beyond this number, or below its inverse, an arc needs no series: the omitted rest is smaller
 * than the last digit.
 */
const farAway = new Decimal(10).pow(precision)

const d = Decimal.clone({
  precision,
  maxE: exponentMax,
  minE: -exponentMax,
  toExpNeg: -20,
  toExpPos: precision,
})
const refuse = (why: string) => fault('INVALID_FIELD', { field: 'expression', why })

const angle = (x: Decimal): Decimal => {
  if (x.abs().gt(angleMax))
    throw refuse('takes the sine, cosine or tangent of a number that is too large')
  return x
}
/** decimal.js squares its argument first; if the square is beyond every exponent, it never ends. */
const isTiny = (x: Decimal): boolean => x.abs().times(farAway).lt(1)
const asin = (x: Decimal): Decimal => (isTiny(x) ? x : x.asin())
function atan(x: Decimal): Decimal {
  if (isTiny(x)) return x
  if (x.abs().lt(farAway)) return x.atan()
  const quarter = d.acos(0)
  return x.isNegative() ? quarter.neg() : quarter
}
function factorial(n: Decimal): Decimal {
  if (!n.isInteger() || n.lt(0) || n.gt(factorialMax))
    throw refuse(
      `takes the factorial of something else than a whole number from 0 to ${factorialMax}`,
    )
  let product = new d(1)
  for (let i = 2; n.gte(i); i++) product = product.times(i)
  return product
}
const round = (x: Decimal, digits: Decimal = new d(0)): Decimal => {
  if (!digits.isInteger() || digits.abs().gt(precision))
    throw refuse(`rounds to something else than 0 to ${precision} places`)
  const places = digits.toNumber()
  return places >= 0
    ? x.toDecimalPlaces(places, d.ROUND_HALF_UP)
    : x
        .div(new d(10).pow(-places))
        .toDecimalPlaces(0, d.ROUND_HALF_UP)
        .times(new d(10).pow(-places))
}
const sum = (...all: readonly Decimal[]): Decimal =>
  all.reduce((total, x) => total.plus(x), new d(0))

type Reckon = (...args: Decimal[]) => Decimal
/** Name → how many arguments it takes, at least and at most, and what it does. */
const functions: ReadonlyMap<string, readonly [min: number, max: number, reckon: Reckon]> = new Map<
  string,
  [number, number, Reckon]
>([
  ['abs', [1, 1, x => x!.abs()]],
  ['sqrt', [1, 1, x => x!.sqrt()]],
  ['cbrt', [1, 1, x => x!.cbrt()]],
  ['exp', [1, 1, x => x!.exp()]],
  ['ln', [1, 1, x => x!.ln()]],
  ['log10', [1, 1, x => x!.log(10)]],
  ['log2', [1, 1, x => x!.log(2)]],
  ['log', [2, 2, (x, base) => x!.log(base!)]],
  ['floor', [1, 1, x => x!.floor()]],
  ['ceil', [1, 1, x => x!.ceil()]],
  ['trunc', [1, 1, x => x!.trunc()]],
  ['round', [1, 2, round as Reckon]],
  ['sin', [1, 1, x => angle(x!).sin()]],
  ['cos', [1, 1, x => angle(x!).cos()]],
  ['tan', [1, 1, x => angle(x!).tan()]],
  ['asin', [1, 1, x => asin(x!)]],
  ['acos', [1, 1, x => x!.acos()]],
  ['atan', [1, 1, x => atan(x!)]],
  ['min', [1, 100, (...all) => d.min(...all)]],
  ['max', [1, 100, (...all) => d.max(...all)]],
  ['sum', [1, 100, sum]],
  ['mean', [1, 100, (...all) => sum(...all).div(all.length)]],
  ['factorial', [1, 1, n => factorial(n!)]],
  // What a pair of parentheses is read as; see `read`.
  ['_', [1, 1, x => x!]],
])
export const functionNames: readonly string[] = [...functions.keys()].filter(name => name !== '_')
const constants: ReadonlyMap<string, () => Decimal> = new Map([
  ['pi', () => d.acos(-1)],
  ['e', () => d.exp(1)],
])
const operators: ReadonlyMap<string, (a: Decimal, b: Decimal) => Decimal> = new Map([
  ['+', (a, b) => a.plus(b)],
  ['-', (a, b) => a.minus(b)],
  ['*', (a, b) => a.times(b)],
  ['/', (a, b) => a.div(b)],
  ['%', (a, b) => a.mod(b)],
  ['**', (a, b) => a.pow(b)],
] as [string, (a: Decimal, b: Decimal) => Decimal][])
const signs: ReadonlyMap<string, (x: Decimal) => Decimal> = new Map([
  ['-', x => x.neg()],
  ['+', x => x],
] as [string, (x: Decimal) => Decimal][])

function known<V>(table: ReadonlyMap<string, V>, name: string): V {
  const found = table.get(name)
  if (found === undefined) throw refuse(`has "${name.slice(0, 40)}", which is not known here`)
  return found
}
function call(name: string, args: readonly Expression[]): Decimal {
  const [min, max, reckon] = known(functions, name)
  if (args.length < min || args.length > max)
    throw refuse(
      `gives ${args.length} values to ${name}, which takes ` +
        `${min === max ? min : `${min} to ${max}`}`,
    )
  return reckon(...args.map(value))
}
/** A sign binds less than a power, unless it stands in parentheses: -2^2 is -4, (-2)^2 is 4. */
function power(base: CoreExpression, exponent: Expression): Decimal {
  return base.type === 'UnaryExpression'
    ? known(signs, base.operator)(power(base.argument as CoreExpression, exponent))
    : known(operators, '**')(value(base), value(exponent))
}
function value(expression: Expression): Decimal {
  const node = expression as CoreExpression
  switch (node.type) {
    // By its digits: as a binary number it would have been rounded already.
    case 'Literal':
      if (typeof node.value === 'number') return new d(node.raw)
      break
    case 'Identifier':
      return known(constants, node.name)()
    case 'UnaryExpression':
      return known(signs, node.operator)(value(node.argument))
    case 'BinaryExpression':
      return node.operator === '**'
        ? power(node.left as CoreExpression, node.right)
        : known(operators, node.operator)(value(node.left), value(node.right))
    case 'CallExpression':
      if (node.callee.type === 'Identifier')
        return call((node.callee as jsep.Identifier).name, node.arguments)
  }
  throw refuse(
    'is not one sum of numbers, operators and known functions; numbers have no thousands ' +
      'separators, and products their *',
  )
}

/** Refuses an expression of more parts, or of deeper ones, than anybody writes. */
function bounded(expression: Expression): Expression {
  const open: [part: Expression, depth: number][] = [[expression, 1]]
  for (let parts = 1; open.length > 0; parts++) {
    const [part, depth] = open.pop()!
    if (parts > partsMax || depth > depthMax)
      throw refuse(`has more than ${partsMax} parts, or more than ${depthMax} within each other`)
    for (const inner of Object.values(part).flat())
      if (typeof inner === 'object' && inner !== null && 'type' in inner)
        open.push([inner as Expression, depth + 1])
  }
  return expression
}

/**
 * The parser drops parentheses, whose place a power must know: those around a part become a
 * function that does nothing.
 */
function read(expression: string): Expression {
  const text = expression
    .replaceAll('×', '*')
    .replaceAll('÷', '/')
    .replaceAll('−', '-')
    .replaceAll('^', '**')
    .replace(/(?<=(?:^|[^\w)\s])\s{0,100})\(/g, '_(')
  try {
    return bounded(jsep(text))
  } catch (cause) {
    if (isFault(cause)) throw cause
    const reason = String((cause as { description?: string }).description ?? 'too deep')
    const why = `cannot be read (${reason.slice(0, 100)})`
    throw fault('INVALID_FIELD', { field: 'expression', why }, { cause })
  }
}

/** Plain digits. INVALID_FIELD for what is not arithmetic, and for what has no finite result. */
export function evaluate(expression: string): string {
  const result = value(read(expression))
  if (!result.isFinite()) throw refuse('has no finite result')
  return result.isInteger() && result.e < precision
    ? result.toFixed()
    : result.toSignificantDigits(shown).toString()
}
