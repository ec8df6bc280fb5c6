// Which run is driven when: caps, the line and its bound. Nobody is overtaken by a later run.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { RunsConfig } from '../config.ts'
import { createSlots, type Slots } from './slots.ts'

type Caps = { active: number; perOrg: number; waiting: number; waitingPerOrg: number }
const placesFor = ({ active, perOrg, waiting, waitingPerOrg }: Caps): Slots =>
  createSlots({
    active_max: active,
    active_per_org_max: perOrg,
    waiting_max: waiting,
    waiting_per_org_max: waitingPerOrg,
  } as RunsConfig)
const roomy: Caps = { active: 2, perOrg: 2, waiting: 100, waitingPerOrg: 100 }
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
const enter = (slots: Slots, ...names: string[]) =>
  names.map(id => slots.acquire({ id, orgId: id[0]! }))
const nextIds = (slots: Slots) => {
  const found: string[] = []
  for (let next = slots.reserveNext(); next; next = slots.reserveNext()) found.push(next.id)
  return found
}

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

const caps = fc.record({
  active: fc.integer({ min: 1, max: 4 }),
  perOrg: fc.integer({ min: 1, max: 4 }),
  waiting: fc.constant(1000),
  waitingPerOrg: fc.constant(1000),
})
const commands = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('arrive' as const),
        org: fc.constantFrom('a', 'b', 'c'),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('finish' as const, 'come' as const),
        pick: fc.nat(100),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constantFrom('missing' as const, 'sweep' as const),
        pick: fc.nat(100),
      }),
    },
  ),
  { minLength: 1, maxLength: 80, size: 'max' },
)

/**
 * Plays a process: runs that arrive, that are driven, and that never come. Some have a reserved
 * slot while their document is still being read.
 */
function simulate(limits: Caps, steps: readonly { do: string; org?: string; pick?: number }[]) {
  const slots = placesFor(limits)
  const driven: string[] = []
  const called: string[] = []
  const line: string[] = []
  const began: string[] = []
  const gone = new Set<string>()
  let arrived = 0
  const take = (list: string[], pick: number) => list.splice(pick % list.length, 1)[0]!
  const begin = (id: string, may: boolean) => {
    if (may) driven.push(id), began.push(id)
    else if (!line.includes(id)) line.push(id)
  }
  const call = () => {
    for (const id of nextIds(slots)) {
      line.splice(line.indexOf(id), 1)
      called.push(id)
    }
  }
  const hold = () => [...driven, ...called]
  const check = () => {
    const held = hold()
    const of = (org: string) => held.filter(id => id[0] === org).length
    assert.ok(
      held.length <= limits.active && ['a', 'b', 'c'].every(org => of(org) <= limits.perOrg),
      'the caps hold',
    )
    assert.equal(slots.counts(), {
      active: held.length,
      waiting: line.length,
      organisations: new Set(held.map(id => id[0])).size,
    })
    for (const id of line)
      assert.ok(
        held.length === limits.active || of(id[0]!) === limits.perOrg,
        `${id} waits although there is a place`,
      )
  }
  const act = (step: (typeof steps)[number]) => {
    const pick = step.pick ?? 0
    if (step.do === 'arrive') {
      const id = `${step.org}${arrived++}`
      begin(id, slots.acquire({ id, orgId: step.org! }))
    } else if (step.do === 'finish' && driven.length > 0) {
      slots.release(take(driven, pick), 5)
      call()
    } else if (step.do === 'come' && called.length > 0) {
      const id = take(called, pick)
      begin(id, slots.acquire({ id, orgId: id[0]! }))
    } else if (step.do === 'missing' && called.length > 0) {
      const id = take(called, pick)
      gone.add(id)
      slots.cancelReservation(id)
      call()
    } else if (step.do === 'sweep' && line.length > 0) {
      const id = line[pick % line.length]!
      assert.is(slots.acquire({ id, orgId: id[0]! }), false, 'a hint moves nobody up')
    }
    check()
  }
  steps.forEach(act)
  while (driven.length + called.length > 0) act({ do: called.length > 0 ? 'come' : 'finish' })
  return { arrived, began, gone, line }
}

test('whatever comes or goes: caps hold, no place stays empty, each is driven once', () => {
  fc.assert(
    fc.property(caps, commands, (limits, steps) => {
      const { arrived, began, gone, line } = simulate(limits, steps)
      assert.equal(line, [])
      assert.is(new Set(began).size, began.length)
      assert.is(began.length + gone.size, arrived)
    }),
    { numRuns: 500 },
  )
})

test('within an organisation the order of calls is the order of arrival', () => {
  fc.assert(
    fc.property(caps, commands, (limits, steps) => {
      // Runs take their reserved slot at once here. In the product only the reading of a document
      // lies between.
      const atOnce = steps
        .filter(one => one.do !== 'come' && one.do !== 'missing')
        .flatMap(one => [one, ...Array.from({ length: 4 }, () => ({ do: 'come', pick: 0 }))])
      const { began } = simulate(limits, atOnce)
      for (const org of ['a', 'b', 'c']) {
        const numbers = began.filter(id => id[0] === org).map(id => Number(id.slice(1)))
        assert.equal(
          numbers,
          numbers.toSorted((x, y) => x - y),
        )
      }
    }),
    { numRuns: 300 },
  )
})

test('a line without bound is not kept: what does not fit in is left to the sweep', () => {
  const slots = placesFor({ active: 2, perOrg: 2, waiting: 3, waitingPerOrg: 3 })
  for (let i = 0; i < 20; i++) slots.acquire({ id: `a${i}`, orgId: 'a' })
  assert.is(slots.counts().waiting, 5)
})

test.run()
