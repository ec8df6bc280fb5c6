// When a start is refused because too many runs wait, and for how long.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { Slots } from './slots.ts'
import { enter, placesFor, roomy } from '../../../test/support/runs/slots.ts'

const refusal = (slots: Slots, orgId: string): number | undefined => {
  try {
    slots.admit(orgId)()
    return undefined
  } catch (error) {
    assert.ok(hasCode(error, 'SHEDDING'), String(error))
    assert.ok(
      error.message.includes(`${Math.ceil(error.retryAfterMs! / 1000)} s`),
      'the sentence says how long, too',
    )
    return error.retryAfterMs
  }
}

test("a start is refused and counted if the line or the organisation's part is full", () => {
  const slots = placesFor({ active: 2, perOrg: 1, waiting: 3, waitingPerOrg: 2 })
  enter(slots, 'a1', 'a2', 'a3')
  assert.is(refusal(slots, 'a') !== undefined, true, 'its own two wait')
  assert.is(refusal(slots, 'b'), undefined, 'others may come')
  enter(slots, 'b1', 'b2')
  assert.is(refusal(slots, 'c') !== undefined, true, 'three wait')
  assert.is(slots.shed(), 2)
})

test('a full line refuses nobody for whom there is a place', () => {
  const slots = placesFor({ active: 3, perOrg: 1, waiting: 1, waitingPerOrg: 1 })
  enter(slots, 'a1', 'a2')
  assert.ok(refusal(slots, 'a'))
  assert.is(refusal(slots, 'b'), undefined)
})

test('whoever is on the way counts, so that many at once are not all let in', () => {
  const slots = placesFor({ active: 2, perOrg: 2, waiting: 3, waitingPerOrg: 3 })
  const ways = Array.from({ length: 5 }, () => slots.admit('a'))
  assert.ok(refusal(slots, 'a'), 'two places and three in the line are spoken for')
  assert.is(
    refusal(placesFor({ ...roomy, active: 1, waiting: 0 }), 'a'),
    undefined,
    'a place needs no line',
  )
  // Two starts failed. One of them reports that twice.
  ways[0]!()
  ways[0]!()
  ways[1]!()
  const again = [slots.admit('a'), slots.admit('a')]
  assert.ok(refusal(slots, 'a'))
  for (const [i, arrive] of [...ways.slice(2), ...again].entries()) {
    slots.acquire({ id: `a${i}`, orgId: 'a' })
    arrive()
  }
  assert.equal([slots.counts().active, slots.counts().waiting], [2, 3])
  assert.ok(refusal(slots, 'a'))
})

test('also those of many organisations, each of which has room for its own', () => {
  const slots = placesFor({ active: 2, perOrg: 2, waiting: 3, waitingPerOrg: 3 })
  for (const org of ['a', 'b', 'c', 'd', 'e']) slots.admit(org)
  assert.ok(refusal(slots, 'f'))
})

test('one organisation on the way does not keep another out', () => {
  const slots = placesFor({ active: 4, perOrg: 2, waiting: 8, waitingPerOrg: 4 })
  for (let i = 0; i < 6; i++) slots.admit('a')
  assert.ok(refusal(slots, 'a'), 'two places and its part of the line')
  for (let i = 0; i < 6; i++) assert.is(refusal(slots, 'b'), undefined)
})

test('the pause grows with the line and with the time of a run, within bounds', () => {
  const after = (waiting: number, ms: number) => {
    const slots = placesFor({ active: 4, perOrg: 4, waiting, waitingPerOrg: waiting })
    for (let i = 0; i < 200; i++) {
      slots.acquire({ id: 'past', orgId: 'a' })
      slots.release('past', ms)
    }
    for (let i = 0; i < waiting + 4; i++) slots.acquire({ id: `a${i}`, orgId: 'a' })
    return refusal(slots, 'a')!
  }
  assert.is(after(8, 100), 1000)
  assert.ok(
    Math.abs(after(8, 4000) - 4000) < 100,
    'half of the time in which two rounds of four are through',
  )
  assert.ok(Math.abs(after(16, 4000) - 8000) < 200)
  assert.is(after(1000, 60_000), 30_000)
})

test.run()
