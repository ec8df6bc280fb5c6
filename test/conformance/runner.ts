// What a kit asks of a test runner: uvu's `test`, node:test's `test`, vitest's `it` all fit.
import assert from 'node:assert/strict'
import { hasCode, type FaultCode } from '#contracts/faults.ts'

export type Test = (name: string, run: () => void | Promise<void>) => void

/**
 * What a place cannot give, each with the reason: a check that needs it is told to `unasked`
 * instead of being run.
 */
export type Lacking<Need extends string> = {
  readonly lacks?: Partial<Record<Need, string | undefined>>
  readonly unasked?: (check: string, why: string) => void
}
/** Registers the checks of a kit, each with what it needs of its place. */
export const asking =
  <Need extends string>(test: Test, { lacks = {}, unasked = () => undefined }: Lacking<Need>) =>
  (check: string, needs: readonly Need[], run: () => Promise<void>): void => {
    const why = needs.map(need => lacks[need]).find(reason => reason !== undefined)
    if (why === undefined) test(check, run)
    else unasked(check, why)
  }

/** The call must fail with this fault; its detail is answered. */
export async function refuses(code: FaultCode, call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    if (!hasCode(error, code))
      throw new assert.AssertionError({ message: `expected ${code}, got ${String(error)}` })
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
