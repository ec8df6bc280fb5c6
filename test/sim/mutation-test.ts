// node test/sim/mutation-test.ts <name of a planted fault>
// Changes the source as it is loaded, sweeps, and says how many schedules it took to fail.
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { resolve } from 'node:path'
import { mutants, applyMutant } from './mutants.ts'

const fault = mutants.find(({ name }) => name === process.argv[2])
if (!fault) throw new Error('There is no such fault.')
const url = pathToFileURL(resolve(import.meta.dirname, '../..', fault.file)).href
let planted = false
registerHooks({
  load(at, context, next) {
    const loaded = next(at, context)
    if (at !== url) return loaded
    const source = applyMutant(fault, String(loaded.source))
    if (source === undefined) throw new Error(`${fault.file} does not hold once: ${fault.find}`)
    planted = true
    return { ...loaded, source }
  },
})
const { singles, told, worlds } = await import('./sweep.ts')
const count = { schedules: 0, moves: 0 }
hunt: {
  for (const world of worlds([undefined, 1, 2, 3], fault.scripts))
    for await (const failure of singles(world, count)) {
      process.stdout.write(`found after ${count.schedules} schedules: ${told(failure)}\n`)
      break hunt
    }
  process.stdout.write(
    `not found in ${count.schedules} schedules${planted ? '' : ': the file was never loaded'}\n`,
  )
}
