// The thread that calculates: it answers one expression after the other, and can be ended at any
// moment.
import { parentPort } from 'node:worker_threads'
import { isFault } from '#contracts/faults.ts'
import { evaluate } from './arithmetic.ts'
import type { Reckoned } from './arithmetic-pool.ts'

const port = parentPort!
const reckoned = (expression: string): Reckoned => {
  try {
    return { result: evaluate(expression) }
  } catch (error) {
    if (isFault(error)) return { why: String(error.values['why']) }
    throw error
  }
}
port.on('message', (expression: string) => port.postMessage(reckoned(expression)))
port.postMessage('ready')
