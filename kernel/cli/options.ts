// A command's options: how they are written on a command line.
import { parseArgs } from 'node:util'
import type { TSchema } from 'typebox'
import { propertiesOf } from '../settings/settings.ts'

export const operandsOf = (schema: TSchema) =>
  propertiesOf(schema)
    .filter(([, property]) => property['x-operand'])
    .map(([name]) => name)

/** The command with its operands and options, as it is written. */
export const usageOf = ({ name, options }: { readonly name: string; readonly options: TSchema }) =>
  [
    name,
    ...operandsOf(options).map(operand => `<${operand}>`),
    ...propertiesOf(options)
      .map(([option]) => option)
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
  const operands = operandsOf(schema)
  const kinds = Object.fromEntries(
    propertiesOf(schema).map(([name, { type }]) => [
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
