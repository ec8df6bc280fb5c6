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

type Closable = { close(): Promise<void> }
/** A check of what `open` gives, which is closed and cleaned up when the check has ended. */
export const withOpened =
  <Opened extends { clean?(): unknown }>(
    open: () => Promise<Opened>,
    engineOf: (opened: Opened) => Closable,
    run: (opened: Opened) => Promise<void>,
  ) =>
  async (): Promise<void> => {
    const opened = await open()
    try {
      await run(opened)
    } finally {
      await engineOf(opened).close()
      await opened.clean?.()
    }
  }
/** A check of the engine of a place, both of which end with the check. */
export const withPlace = <Engine extends Closable, Place extends { clean?(): Promise<void> }>(
  place: () => Promise<Place & { open(): Promise<Engine> }>,
  run: (engine: Engine, at: Place) => Promise<void>,
): (() => Promise<void>) =>
  withOpened(
    async () => {
      const at = await place()
      return { at, engine: await at.open(), clean: () => at.clean?.() }
    },
    ({ engine }) => engine,
    ({ engine, at }) => run(engine, at),
  )

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
