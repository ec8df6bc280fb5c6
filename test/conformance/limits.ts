// What every rate limiter promises. `pass` lets that much time go by on the limiter's clock.
import assert from 'node:assert/strict'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import { asking, refuses, type Lacking, type Test, withOpened } from './runner.ts'

const bucketRate: Rate = { perSecond: 20, burst: 40 }
const windowRate: Rate = { count: 5, perMs: 60_000 }

/** `time`: that the limiter's time stands still until `pass` moves it. */
type Kit = Lacking<'time'> & {
  open: () => Promise<{
    limits: RateLimiter
    pass: (ms: number) => Promise<unknown>
    clean?(): Promise<void>
  }>
}

export function limitsKit(test: Test, name: string, { open, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  type Opened = Awaited<ReturnType<typeof open>>
  const on = (
    title: string,
    needs: readonly 'time'[],
    run: (opened: Opened) => Promise<void>,
  ): void =>
    ask(
      `${name}: ${title}`,
      needs,
      withOpened(open, ({ limits }) => limits, run),
    )
  const allowed = async (
    limits: RateLimiter,
    rate: Rate,
    { tries, subject = 'ann' }: { tries: number; subject?: string },
  ): Promise<number> => {
    let passed = 0
    for (let n = 0; n < tries; n++) if ((await limits.take('kit', subject, rate)) === 0) passed++
    return passed
  }
  on('from rest a burst passes whole, and not one more', ['time'], async ({ limits }) => {
    assert.equal(await allowed(limits, bucketRate, { tries: 60 }), 40)
    for (const perSecond of [3, 7, 0.1])
      assert.equal(
        await allowed(limits, { perSecond, burst: 40 }, { tries: 41, subject: `at ${perSecond}` }),
        40,
      )
  })
  on(
    'a bucket refills at its pace, and the wait that it names is long enough',
    ['time'],
    async ({ limits, pass }) => {
      await allowed(limits, bucketRate, { tries: 40 })
      const waitMs = await limits.take('kit', 'ann', bucketRate)
      assert.ok(waitMs > 0 && waitMs <= 50)
      await pass(waitMs)
      assert.equal(await limits.take('kit', 'ann', bucketRate), 0)
      assert.ok((await limits.take('kit', 'ann', bucketRate)) > 0)
      await pass(1000)
      assert.equal(await allowed(limits, bucketRate, { tries: 30 }), 20)
    },
  )
  on('a refused try is not counted', ['time'], async ({ limits, pass }) => {
    await allowed(limits, bucketRate, { tries: 400 })
    await pass(2000)
    assert.equal(await allowed(limits, bucketRate, { tries: 60 }), 40)
    await allowed(limits, windowRate, { tries: 50, subject: 'bob' })
    await pass(60_000)
    assert.equal(await allowed(limits, windowRate, { tries: 50, subject: 'bob' }), 5)
  })
  on(
    'a window passes its count from its first, then waits for its end',
    ['time'],
    async ({ limits, pass }) => {
      assert.equal(await allowed(limits, windowRate, { tries: 1 }), 1)
      await pass(30_000)
      assert.equal(await allowed(limits, windowRate, { tries: 9 }), 4)
      const waitMs = await limits.take('kit', 'ann', windowRate)
      assert.ok(waitMs > 29_000 && waitMs <= 30_000)
      await pass(waitMs)
      assert.equal(await allowed(limits, windowRate, { tries: 9 }), 5)
    },
  )
  on('subjects and names do not share a count', [], async ({ limits }) => {
    assert.equal(await allowed(limits, windowRate, { tries: 6 }), 5)
    assert.equal(await allowed(limits, windowRate, { tries: 6, subject: 'bob' }), 5)
    assert.equal(await limits.take('other', 'ann', windowRate), 0)
  })
  on(
    'a cost counts as many; one that never fits is refused, and so is a rate that lets ' +
      'nothing pass',
    ['time'],
    async ({ limits }) => {
      assert.equal(await limits.take('kit', 'ann', bucketRate, 39), 0)
      assert.equal(await limits.take('kit', 'ann', bucketRate), 0)
      assert.ok((await limits.take('kit', 'ann', bucketRate)) > 0)
      assert.equal(await limits.take('kit', 'eve', windowRate, 3), 0)
      assert.ok((await limits.take('kit', 'eve', windowRate, 3)) > 0)
      assert.equal(await limits.take('kit', 'eve', windowRate, 2), 0)
      await refuses('INVALID_FIELD', async () => limits.take('kit', 'bob', bucketRate, 41))
      await refuses('INVALID_FIELD', async () =>
        limits.take('kit', 'bob', { perSecond: 0, burst: 1 }),
      )
    },
  )
  on(
    'a refund takes back what was counted, of a bucket and of a window, and never more',
    ['time'],
    async ({ limits, pass }) => {
      for (const [subject, rate, most] of [
        ['ann', bucketRate, 40],
        ['bob', windowRate, 5],
      ] as const) {
        await limits.refund('kit', subject, rate)
        assert.equal(await allowed(limits, rate, { tries: 60, subject }), most)
        await limits.refund('kit', subject, rate)
        await limits.refund('kit', subject, rate, 2)
        assert.equal(await allowed(limits, rate, { tries: 60, subject }), 3)
        await pass(60_000)
        await limits.refund('kit', subject, rate, 5)
        assert.equal(await allowed(limits, rate, { tries: 60, subject }), most)
      }
    },
  )
  on("reset forgets one subject's count", [], async ({ limits }) => {
    await allowed(limits, windowRate, { tries: 5 })
    await allowed(limits, windowRate, { tries: 5, subject: 'bob' })
    await limits.reset('kit', 'ann')
    assert.equal(await limits.take('kit', 'ann', windowRate), 0)
    assert.ok((await limits.take('kit', 'bob', windowRate)) > 0)
  })
  on(
    'closed, it refuses; closing twice is allowed; opened again, it serves',
    [],
    async ({ limits }) => {
      await limits.ping()
      await limits.close()
      await limits.close()
      await refuses('UNAVAILABLE', async () => limits.take('kit', 'ann', windowRate))
      await refuses('UNAVAILABLE', async () => limits.reset('kit', 'ann'))
      await refuses('UNAVAILABLE', () => limits.ping())
      const again = await open()
      assert.equal(await again.limits.take('kit', 'ann', windowRate), 0)
      await again.limits.close()
      await again.clean?.()
    },
  )
}
