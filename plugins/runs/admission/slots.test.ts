// Which run is driven when: caps, and the line. Nobody is overtaken by a later run.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { enter, nextIds, placesFor, roomy } from '../../../test/support/runs/slots.ts'

test('a process drives so many, an organisation so many of these; the others wait', () => {
  const slots = placesFor({ ...roomy, active: 3 })
  assert.equal(enter(slots, 'a1', 'a2', 'a3', 'b1', 'b2'), [true, true, false, true, false])
  assert.equal(slots.counts(), { active: 3, waiting: 2, organisations: 2 })
  assert.equal(nextIds(slots), [], 'nobody has left')
  assert.equal(enter(slots, 'a1'), [false], 'who is driven is not driven twice')
  assert.equal(enter(slots, 'b2'), [false])
  assert.is(slots.counts().waiting, 2, 'who waits does not wait twice')
})

test('who is first in line goes first, past those whose organisation is full', () => {
  const slots = placesFor({ ...roomy, active: 2, perOrg: 1 })
  enter(slots, 'a1', 'c1', 'a2', 'a3', 'b1', 'b2')
  slots.release('c1')
  assert.equal(nextIds(slots), ['b1'])
  slots.release('a1')
  assert.equal(nextIds(slots), ['a2'])
  slots.release('b1')
  slots.release('a2')
  assert.equal(nextIds(slots), ['a3', 'b2'])
})

test('a free place is kept for the one that was called; nobody comes in between', () => {
  const slots = placesFor({ ...roomy, active: 1 })
  enter(slots, 'a1', 'a2', 'b1')
  slots.release('a1')
  assert.equal(nextIds(slots), ['a2'], 'one place, one call')
  assert.equal(enter(slots, 'c1'), [false])
  assert.equal(slots.counts(), { active: 1, waiting: 2, organisations: 1 })
  assert.equal(enter(slots, 'a2'), [true])
  assert.equal(enter(slots, 'a2'), [false], 'it is driven')
  slots.release('a2')
  assert.equal(nextIds(slots), ['b1'])
})

test('who was called and does not come gives its place to the next; who came keeps it', () => {
  const slots = placesFor({ ...roomy, active: 1 })
  enter(slots, 'a1', 'a2', 'b1')
  slots.release('a1')
  assert.equal(nextIds(slots), ['a2'])
  slots.cancelReservation('a2')
  assert.equal(nextIds(slots), ['b1'])
  enter(slots, 'b1')
  slots.cancelReservation('b1')
  assert.equal([slots.counts().active, nextIds(slots)], [1, []])
})

test('leaving twice, or without a place, changes nothing', () => {
  const slots = placesFor({ ...roomy, active: 1 })
  enter(slots, 'a1', 'b1')
  slots.release('b1')
  slots.release('nobody')
  assert.equal(slots.counts(), { active: 1, waiting: 1, organisations: 1 })
  slots.release('a1')
  slots.release('a1')
  assert.equal(
    [slots.counts(), nextIds(slots)],
    [{ active: 0, waiting: 1, organisations: 0 }, ['b1']],
  )
})

test('a line without bound is not kept: what does not fit in is left to the sweep', () => {
  const slots = placesFor({ active: 2, perOrg: 2, waiting: 3, waitingPerOrg: 3 })
  for (let i = 0; i < 20; i++) slots.acquire({ id: `a${i}`, orgId: 'a' })
  assert.is(slots.counts().waiting, 5)
})

test.run()
