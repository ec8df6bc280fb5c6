// How many jobs wait and run.
import assert from 'node:assert/strict'
import { ends, latch, until, type On } from './common.ts'

export function depths(on: On): void {
  on(
    'how many wait and run is told by name: not those whose time is yet to come, nor what ' +
      'has ended',
    [],
    async (queue, { clock }) => {
      const gate = latch()
      const names = ['a', 'b', 'nobody']
      const none = { waiting: 0, running: 0 }
      assert.deepEqual(await queue.depth(names), { a: none, b: none, nobody: none })
      for (let n = 0; n < 3; n++) await queue.enqueue('nobody', n)
      const cancelled = await queue.enqueue('nobody', 3)
      const failed = await queue.enqueue('c', 4)
      await queue.cancel(cancelled)
      await queue.enqueue('a', 5, { runAt: clock.now() + 3_600_000 })
      queue.define(
        'c',
        async () => {
          throw new Error('no')
        },
        { attemptsMax: 1 },
      )
      await ends(queue, failed, 'failed')
      queue.define('b', () => gate.opened, { concurrency: 2 })
      const taken = await Promise.all(Array.from({ length: 5 }, (_, n) => queue.enqueue('b', n)))
      await until(async () => (await queue.depth(['b']))['b']!.running === 2, 'two under way')
      assert.deepEqual(await queue.depth([...names, 'c']), {
        a: none,
        b: { waiting: 3, running: 2 },
        nobody: { waiting: 3, running: 0 },
        c: none,
      })
      assert.deepEqual(
        [await queue.depth(['nobody']), await queue.depth([])],
        [{ nobody: { waiting: 3, running: 0 } }, {}],
      )
      gate.open()
      for (const id of taken) await ends(queue, id, 'done')
      assert.deepEqual(await queue.depth(['b']), { b: none })
    },
  )
}
