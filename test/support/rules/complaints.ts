// How the rules of the house complain: everything at once, a line each.
import * as assert from 'uvu/assert'

export const complain = (found: readonly string[]): void =>
  assert.equal(found, [], `\n${found.join('\n')}\n`)

/**
 * What has more lines than it may. A table lists what is longer, each with its own bound; an entry
 * that is not needed any more is a complaint, too.
 */
export const tooLong = (
  found: readonly { readonly key: string; readonly at: string; readonly lines: number }[],
  linesMax: number,
  longer: Readonly<Record<string, number>> = {},
): string[] => [
  ...found
    .filter(({ key, lines }) => lines > (longer[key] ?? linesMax))
    .map(({ at, lines }) => `${at} has ${lines} lines`),
  ...Object.keys(longer)
    .filter(name => !found.some(({ key, lines }) => key === name && lines > linesMax))
    .map(name => `${name} is listed as longer than ${linesMax} lines, and is not`),
]
