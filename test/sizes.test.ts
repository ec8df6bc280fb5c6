// How large a folder, a file and a line may be, and the kernel. `function-lines.test.ts` holds the
// functions.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { files, linesOf, programs, sources } from './support/sources.ts'

const complain = (found: string[]) => assert.equal(found, [], `\n${found.join('\n')}\n`)

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
/** Files that are longer, with their lines: none may join them, and each may only get shorter. */
const longer: Readonly<Record<string, number>> = {
  'kernel/cli/run.ts': 422,
  'plugins/files/files.test.ts': 350,
  'plugins/identity/identity.test.ts': 398,
  'plugins/operator/copy/copy.test.ts': 422,
  'plugins/runs/admission/slots.test.ts': 314,
  'plugins/runs/engine/stall-watchdog.test.ts': 325,
  'plugins/runs/engine/takeover.test.ts': 418,
  'plugins/runs/journal/bounds.test.ts': 343,
  'plugins/runs/journal/state.ts': 364,
  'plugins/runs/prompt/context.test.ts': 351,
  'plugins/runs/prompt/planning.test.ts': 395,
  'plugins/runs/runs.test.ts': 503,
  'plugins/runs/sessions/transcripts.ts': 347,
  'plugins/runs/steps/model-call.test.ts': 469,
  'plugins/runs/steps/model-call.ts': 332,
  'plugins/runs/steps/resume-plan.test.ts': 525,
  'plugins/runs/steps/tool-calls.ts': 392,
  'plugins/runs/tools/tools.test.ts': 315,
  'plugins/tools/calculator.test.ts': 323,
  'test/bench/soak/soak.ts': 331,
  'test/docs/pages.ts': 376,
  'test/hostile/requests.ts': 482,
  'test/http/server.test.ts': 408,
  'test/http/streamed-body.test.ts': 391,
  'test/kernel/declared-ports.test.ts': 328,
  'test/kernel/lifecycle.test.ts': 317,
  'test/operator/telemetry/figures.test.ts': 322,
  'test/sim/scripts.ts': 431,
  'test/sim/simulated-cluster.ts': 412,
}
test('no file has more than 300 lines', () => {
  complain(
    files
      .filter(file => linesOf(file).length - 1 > (longer[file] ?? linesMax))
      .map(file => `${file} has ${linesOf(file).length - 1} lines`),
  )
  complain(
    Object.keys(longer)
      .filter(file => !files.includes(file) || linesOf(file).length - 1 <= linesMax)
      .map(file => `${file} is listed as longer than ${linesMax} lines, and is not`),
  )
})

test('no line has more than 100 columns', () => {
  complain(
    files.flatMap(file =>
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
    ['kernel/', /^kernel\/[^/]+$/, 2100],
    ['kernel/routing/', /^kernel\/routing\//, 520],
    ['kernel/settings/', /^kernel\/settings\//, 440],
    ['kernel/access/', /^kernel\/access\//, 300],
    ['kernel/cli/', /^kernel\/cli\//, 900],
    ['kernel/loading/', /^kernel\/loading\//, 500],
    ['kernel/scoped-ports/', /^kernel\/scoped-ports\//, 820],
    ['kernel/isolation/', /^kernel\/isolation\//, 950],
    ['kernel/management/', /^kernel\/management\//, 850],
    ['kernel/request-body/', /^kernel\/request-body\//, 480],
    ['kernel/telemetry/', /^kernel\/telemetry\//, 510],
  ] as const
  for (const [what, folder, most] of bounds)
    assert.ok(linesIn(folder) <= most, `${what} has ${linesIn(folder)} lines`)
})

test.run()
