// How the rules of the house complain: everything at once, a line each.
import * as assert from 'uvu/assert'

export const complain = (found: readonly string[]): void =>
  assert.equal(found, [], `\n${found.join('\n')}\n`)

/** What has more lines than it may. */
export const tooLong = (
  found: readonly { readonly at: string; readonly lines: number }[],
  linesMax: number,
): string[] =>
  found.filter(({ lines }) => lines > linesMax).map(({ at, lines }) => `${at} has ${lines} lines`)
