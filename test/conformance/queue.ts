// What every queue promises. Time is the manual clock's; only the way of an answer through threads
// and sockets is waited for.
import assert from 'node:assert/strict'
import { hasCode } from '#contracts/faults.ts'
import { ends, type Kit, type On } from './queue/common.ts'
import { depths } from './queue/depth.ts'
import { dedupe, jobs } from './queue/jobs.ts'
import { cancels, retries } from './queue/outcomes.ts'
import { leases, schedules } from './queue/time.ts'
import { asking, refuses, type Test, withPlace } from './runner.ts'

export function queueKit(test: Test, name: string, { place, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, needs, run) => ask(`${name}: ${title}`, needs, withPlace(place, run))
  jobs(on)
  depths(on)
  dedupe(on)
  retries(on)
  leases(on)
  schedules(on)
  cancels(on)
  states(on)
}

function states(on: On): void {
  on(
    'closing tells the jobs under way, and puts them back untried',
    ['another'],
    async (queue, { another }) => {
      const { queue: closing } = await another()
      closing.define(
        'a',
        ({ signal }) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new Error('closing'))),
          ),
        { attemptsMax: 1 },
      )
      const id = await closing.enqueue('a', null)
      await ends(queue, id, 'running')
      await Promise.all([closing.close(), closing.close()])
      assert.equal(await queue.state(id), 'waiting')
      let attempt = 0
      queue.define('a', async job => void (attempt = job.attempt))
      await ends(queue, id, 'done')
      assert.equal(attempt, 1)
    },
  )
  on('closed, it refuses every call; closing twice is allowed', [], async queue => {
    await queue.ping()
    const id = await queue.enqueue('a', null)
    await Promise.all([queue.close(), queue.close()])
    const timetable = { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' }
    for (const call of [
      () => queue.enqueue('a', null),
      () => queue.schedule('k', timetable),
      () => queue.unschedule('k'),
      () => queue.cancel(id),
      () => queue.state(id),
      () => queue.depth(['a']),
      () => queue.ping(),
    ])
      await refuses('UNAVAILABLE', call)
    assert.throws(
      () => queue.define('a', async () => {}),
      error => hasCode(error, 'UNAVAILABLE'),
    )
  })
}
