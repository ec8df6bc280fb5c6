// How large a folder, a file and a line may be, and the kernel. `function-lines.test.ts` holds the
// functions.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { complain, tooLong } from './support/rules/complaints.ts'
import { files, linesOf, programs, sources } from './support/sources.ts'

const filesMax = 15
/** Contracts and ports are each read as one list. */
const lists = ['contracts', 'ports']
test('no folder has more than 15 files', () => {
  const folders = Map.groupBy(programs, file => file.slice(0, file.lastIndexOf('/')))
  complain(
    [...folders]
      .filter(([folder, inside]) => inside.length > filesMax && !lists.includes(folder))
      .map(([folder, inside]) => `${folder} has ${inside.length} files`),
  )
})

const linesMax = 300
test('no file has more than 300 lines', () => {
  const found = files.map(file => ({ at: file, lines: linesOf(file).length - 1 }))
  complain(tooLong(found, linesMax))
})

test('no line has more than 100 columns', () => {
  complain(
    programs.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        text.length > 100 ? [`${file}:${i + 1} has ${text.length} columns`] : [],
      ),
    ),
  )
})

test('the kernel stays small', () => {
  const linesIn = (folder: RegExp) =>
    sources.filter(file => folder.test(file)).reduce((sum, file) => sum + linesOf(file).length, 0)
  const bounds = [
    ['kernel/', /^kernel\/[^/]+$/, 1560],
    ['kernel/cli/', /^kernel\/cli\//, 880],
    ['kernel/exchange/', /^kernel\/exchange\//, 480],
    ['kernel/isolation/', /^kernel\/isolation\//, 900],
    ['kernel/loading/', /^kernel\/loading\//, 760],
    ['kernel/management/', /^kernel\/management\//, 860],
    ['kernel/request-body/', /^kernel\/request-body\//, 385],
    ['kernel/routing/', /^kernel\/routing\//, 630],
    ['kernel/scoped-ports/', /^kernel\/scoped-ports\//, 800],
    ['kernel/settings/', /^kernel\/settings\//, 440],
    ['kernel/telemetry/', /^kernel\/telemetry\//, 470],
    ['kernel/validation/', /^kernel\/validation\//, 185],
  ] as const
  for (const [what, folder, most] of bounds)
    assert.ok(linesIn(folder) <= most, `${what} has ${linesIn(folder)} lines`)
  const all = sources.filter(file => file.startsWith('kernel/'))
  complain(
    all
      .filter(file => !bounds.some(([, folder]) => folder.test(file)))
      .map(file => `${file} is in a folder without a bound`),
  )
})

test.run()
