// Jobs that fail, and jobs that are cancelled.
import assert from 'node:assert/strict'
import { ends, within, type On } from './common.ts'

export function retries(on: On): void {
  on(
    'a job that fails is tried again after pauses that grow, then kept as failed',
    ['time'],
    async (queue, { clock }) => {
      const at: number[] = []
      const attempts: number[] = []
      queue.define(
        'a',
        async ({ attempt }) => {
          at.push(clock.now())
          attempts.push(attempt)
          throw new Error('no')
        },
        { attemptsMax: 4, backoffMs: 10_000 },
      )
      const id = await queue.enqueue('a', null, { dedupeKey: 'k' })
      await within(clock, 100_000, async () => (await queue.state(id)) === 'failed', 'failed', 500)
      assert.deepEqual(attempts, [1, 2, 3, 4])
      for (const [n, longest] of [10_000, 20_000, 40_000].entries()) {
        const pause = at[n + 1]! - at[n]!
        assert.ok(pause >= longest / 2 && pause <= longest + 1000, `${pause} of ${longest}`)
      }
      assert.notEqual(await queue.enqueue('a', null, { dedupeKey: 'k' }), id)
    },
  )
  on('a job that succeeds at its second try is done', ['time'], async (queue, { clock }) => {
    queue.define('a', async ({ attempt }) => {
      if (attempt === 1) throw new Error('not yet')
    })
    const id = await queue.enqueue('a', null)
    await within(clock, 10_000, async () => (await queue.state(id)) === 'done', 'done')
  })
}

export function cancels(on: On): void {
  on('a waiting job is cancelled, a running one is told, an ended one stays', [], async queue => {
    const waiting = await queue.enqueue('nobody', null, { dedupeKey: 'k' })
    assert.equal(await queue.cancel(waiting), true)
    assert.equal(await queue.state(waiting), 'cancelled')
    assert.equal(await queue.cancel(waiting), false)
    assert.notEqual(await queue.enqueue('nobody', null, { dedupeKey: 'k' }), waiting)
    queue.define(
      'a',
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error('stopped'))),
        ),
    )
    const running = await queue.enqueue('a', null)
    await ends(queue, running, 'running')
    assert.equal(await queue.cancel(running), false)
    await ends(queue, running, 'cancelled')
    queue.define('b', async () => {})
    const done = await queue.enqueue('b', null)
    await ends(queue, done, 'done')
    assert.equal(await queue.cancel(done), false)
    assert.equal(await queue.state(done), 'done')
    assert.equal(await queue.cancel('unknown'), false)
  })
}
