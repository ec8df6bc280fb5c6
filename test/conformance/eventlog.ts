// What every event log promises.
import assert from 'node:assert/strict'
import type { EventlogEngine } from '#ports/eventlog.ts'
import { hasCode } from '#contracts/faults.ts'
import { appends } from './eventlog/append.ts'
import { event, events, followTo, seqs, type On } from './eventlog/common.ts'
import { follows, slowReaders } from './eventlog/follow.ts'
import { restores } from './eventlog/restore.ts'
import { rewrites } from './eventlog/rewrite.ts'
import { trims } from './eventlog/trim.ts'
import { refuses, type Test, withPlace } from './runner.ts'

type Place = {
  open(): Promise<{ readonly log: EventlogEngine; close(): Promise<void> }>
  clean?(): Promise<void>
}
type Kit = {
  place: () => Promise<Place>
  /** What was durable is there after closing and opening again. */
  survives: boolean
}
export function eventlogKit(test: Test, name: string, { place, survives }: Kit): void {
  const on: On = (title, run) =>
    test(
      `${name}: ${title}`,
      withPlace(place, ({ log }) => run(log)),
    )
  appends(on)
  trims(on)
  rewrites(on)
  restores(on)
  follows(on)
  slowReaders(on)
  states(test, name, { place, survives })
}

function states(test: Test, name: string, { place, survives }: Kit): void {
  test(`${name}: after closing, every call is refused and followers have ended`, async () => {
    const at = await place()
    const { log, close } = await at.open()
    const waiting = followTo(log, 'a', 1).catch((error: unknown) => error)
    await log.ping()
    await close()
    await close()
    assert.ok(hasCode(await waiting, 'UNAVAILABLE'))
    const { signal } = new AbortController()
    for (const call of [
      () => log.append('a', events(1)),
      () => log.read('a'),
      () => log.bounds('a'),
      () => log.trim('a', 1),
      () => log.rewrite('a', { from: 1, through: 1 }, [{ ...event(1), seq: 1 }]),
      () => log.remove('a'),
      () => log.durable(),
      () => log.ping(),
      () => Array.fromAsync(log.follow('a', { signal })),
    ])
      await refuses('UNAVAILABLE', call)
    await at.clean?.()
  })
  if (!survives) return
  test(`${name}: streams, trims and numbers are there after opening again`, async () => {
    const at = await place()
    const first = await at.open()
    await first.log.append('a', events(5))
    await first.log.append('b', events(5))
    await first.log.trim('a', 5)
    await first.log.trim('b', 2)
    await first.log.append('c', events(5))
    await first.log.rewrite('c', { from: 1, through: 4 }, [{ ...event(9), seq: 4 }])
    await first.close()
    const second = await at.open()
    assert.deepEqual(await second.log.bounds('a'), { first: 6, last: 5 })
    assert.deepEqual(seqs(await second.log.read('b')), [3, 4, 5])
    assert.deepEqual(await second.log.read('c'), [
      { ...event(9), seq: 4 },
      { ...event(5), seq: 5 },
    ])
    assert.equal(await second.log.append('a', events(1), { expect: 5 }), 6)
    await second.close()
    await at.clean?.()
  })
}
