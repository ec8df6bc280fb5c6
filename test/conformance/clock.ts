// What every clock promises. `pass` lets time go by: a manual clock advances, a real one waits.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import type { Clock } from '#ports/clock.ts'
import { rejectsWith, type Test } from './runner.ts'

const uuid7Pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const idsMade = 20_000

export function clockKit(
  test: Test,
  name: string,
  {
    open,
    pass,
  }: { open: () => Promise<Clock>; pass: (clock: Clock, ms: number) => Promise<unknown> },
): void {
  test(`${name}: time moves on and never back`, async () => {
    const clock = await open()
    const [now, monotonic] = [clock.now(), clock.monotonic()]
    await pass(clock, 20)
    assert.ok(clock.now() - now >= 19 && clock.monotonic() - monotonic >= 19)
  })
  test(`${name}: a sleeper wakes at its time and not before, the shorter one first`, async () => {
    const clock = await open()
    const woken: string[] = []
    const both = [
      clock.sleep(40).then(() => woken.push('long')),
      clock.sleep(10).then(() => woken.push('short')),
    ]
    assert.deepEqual(woken, [])
    await pass(clock, 80)
    await Promise.all(both)
    assert.deepEqual(woken, ['short', 'long'])
  })
  test(`${name}: a sleep rejects at once with the signal's reason, and lets go of it`, async () => {
    const clock = await open()
    const controller = new AbortController()
    const reason = new Error('cancelled')
    const asleep = clock.sleep(60_000, controller.signal)
    assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
    controller.abort(reason)
    await rejectsWith(reason, () => asleep)
    await rejectsWith(reason, () => clock.sleep(0, controller.signal))
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  })
  test(`${name}: a sleep that ended leaves no listener on a signal that lives on`, async () => {
    const clock = await open()
    const { signal } = new AbortController()
    const sleeps = Array.from({ length: 100 }, () => clock.sleep(1, signal))
    await pass(clock, 10)
    await Promise.all(sleeps)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })
  test(`${name}: a sleeper does not keep the process alive`, async () => {
    const clock = await open()
    const controller = new AbortController()
    const before = process.getActiveResourcesInfo()
    const asleep = clock.sleep(60_000, controller.signal)
    const during = process.getActiveResourcesInfo()
    // Before the verdict: a sleeper that does keep the process alive shall not keep this one.
    controller.abort(new Error('woken'))
    await assert.rejects(asleep)
    assert.deepEqual(during, before)
  })
  test(`${name}: an id can be made to follow one from far ahead; later ids do not`, async () => {
    const clock = await open()
    const before = clock.id()
    const ahead = `${(BigInt(`0x${before.slice(0, 8)}${before.slice(9, 13)}`) + 300_000n)
      .toString(16)
      .padStart(12, '0')
      .replace(/^(.{8})/, '$1-')}-7fff-bfff-ffffffffffff`
    const later = clock.id(ahead)
    assert.ok(uuid7Pattern.test(later) && later > ahead, `${later} after ${ahead}`)
    assert.ok(clock.id(before) > before && clock.id() < ahead)
  })
  test(`${name}: ids are UUIDs of version 7, never repeat, and sort as they come`, async () => {
    const clock = await open()
    const ids = Array.from({ length: idsMade }, () => clock.id())
    assert.ok(ids.every(id => uuid7Pattern.test(id)))
    assert.equal(new Set(ids).size, idsMade)
    assert.deepEqual(ids.toSorted(), ids)
    await pass(clock, 50)
    const later = clock.id()
    assert.ok(later > ids.at(-1)!)
    assert.ok(
      Math.abs(Number.parseInt(later.replaceAll('-', '').slice(0, 12), 16) - clock.now()) < 1000,
    )
  })
  test(`${name}: randomness has its length, fills its range and differs every time`, async () => {
    const clock = await open()
    assert.equal(clock.randomBytes(33).length, 33)
    assert.notDeepEqual(clock.randomBytes(16), clock.randomBytes(16))
    const draws = Array.from({ length: 2000 }, () => clock.random())
    assert.ok(draws.every(draw => draw >= 0 && draw < 1))
    assert.ok(Math.min(...draws) < 0.01 && Math.max(...draws) > 0.99)
  })
}
