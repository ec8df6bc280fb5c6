// Whatever comes or goes: the caps hold, no slot stays empty, and nobody is overtaken.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { nextIds, placesFor, type Caps } from '../../../test/support/runs/slots.ts'

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

test.run()
