// What a kit asks of a test runner: uvu's `test`, node:test's `test`, vitest's `it` all fit.
import assert from 'node:assert/strict'
import { hasCode, type FaultCode } from '#contracts/faults.ts'

export type Test = (name: string, run: () => void | Promise<void>) => void

/** The call must fail with this fault; its detail is answered. */
export async function refuses(code: FaultCode, call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    if (!hasCode(error, code)) throw new assert.AssertionError({ message: `expected ${code}, got ${String(error)}` })
    return error.message
  }
  throw new assert.AssertionError({ message: `expected ${code}, but it was allowed` })
}

/** The call must reject with exactly this value. */
export async function rejectsWith(reason: unknown, call: () => Promise<unknown>): Promise<void> {
  try {
    await call()
  } catch (error) {
    assert.equal(error, reason)
    return
  }
  throw new assert.AssertionError({ message: 'expected a rejection' })
}
