// A command's options: how they are written on a command line.
import { parseArgs } from 'node:util'
import type { TSchema } from 'typebox'

type Properties = Record<string, { type?: string; 'x-operand'?: boolean }>
const propertiesOf = (schema: TSchema) => (schema as { properties?: Properties }).properties ?? {}
export const operandsOf = (schema: TSchema) =>
  Object.entries(propertiesOf(schema))
    .filter(([, property]) => property['x-operand'])
    .map(([name]) => name)

/** The command with its operands and options, as it is written. */
export const usageOf = ({ name, options }: { readonly name: string; readonly options: TSchema }) =>
  [
    name,
    ...operandsOf(options).map(operand => `<${operand}>`),
    ...Object.keys(propertiesOf(options))
      .filter(option => !operandsOf(options).includes(option))
      .map(option => `--${option} …`),
  ].join(' ')

/**
 * Parses options by the command's schema, and words for options marked as operands. Every command
 * has `--json` and `--help`.
 */
export function parseOptions(
  args: string[],
  schema: TSchema,
  words: readonly string[] = [],
): { options: Record<string, unknown>; json: boolean } {
  const properties = propertiesOf(schema)
  const operands = operandsOf(schema)
  const kinds = Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [
      name,
      { type: type === 'boolean' ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { values } = parseArgs({ args, options: { ...kinds, json: { type: 'boolean' } } })
  const { json, ...options } = values
  if (words.length > operands.length)
    throw new Error(`"${words[operands.length]}" is one word too many.`)
  return {
    options: { ...options, ...Object.fromEntries(words.map((word, i) => [operands[i]!, word])) },
    json: Boolean(json),
  }
}
