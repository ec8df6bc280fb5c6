import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '../../adapters/clock/manual.ts'
import { queueDepths } from './queue-depth.ts'

const turn = () => new Promise(resolve => setImmediate(resolve))
function scraped(
  depth: () => Promise<Readonly<Record<string, { waiting: number; running: number }>>>,
) {
  const clock = manualClock()
  const names = ['a']
  const asked: string[][] = []
  const gauge = queueDepths({
    clock,
    names: () => names,
    queue: { depth: wanted => (asked.push([...wanted]), depth()) },
  })
  return {
    clock,
    names,
    asked,
    gauge,
    scrape: async () =>
      (await gauge.get()).values.map(
        ({ labels, value }) => `${labels.job} ${labels.state} ${value}`,
      ),
  }
}

test('any number of scrapes asks the queue once in five seconds', async () => {
  let waiting = 3
  const { clock, names, asked, scrape } = scraped(async () => ({ a: { waiting, running: 1 } }))
  const all = await Promise.all(Array.from({ length: 10 }, scrape))
  assert.equal(
    all,
    Array.from({ length: 10 }, () => ['a waiting 3', 'a running 1']),
  )
  waiting = 4
  await clock.advance(4999)
  assert.equal(await scrape(), ['a waiting 3', 'a running 1'])
  assert.is(asked.length, 1)
  names.push('b')
  await clock.advance(1)
  assert.equal(await scrape(), ['a waiting 4', 'a running 1'])
  assert.equal(asked, [['a'], ['a', 'b']])
  assert.is(clock.sleeping(), 0)
})

test('a queue that fails is asked again after five seconds; no old figure is shown', async () => {
  let isAway = false
  const { clock, asked, scrape } = scraped(async () => {
    if (isAway) throw new Error('away')
    return { a: { waiting: 1, running: 0 } }
  })
  assert.equal(await scrape(), ['a waiting 1', 'a running 0'])
  isAway = true
  await clock.advance(5000)
  assert.equal([await scrape(), await scrape()], [[], []])
  isAway = false
  await clock.advance(5000)
  assert.equal(await scrape(), ['a waiting 1', 'a running 0'])
  assert.is(asked.length, 3)
})

test('a slow queue is waited for one second, and never asked twice at a time', async () => {
  const answer = Promise.withResolvers<{ a: { waiting: number; running: number } }>()
  const { clock, asked, scrape } = scraped(() => answer.promise)
  for (let n = 0; n < 3; n++) {
    let told: string[] | undefined
    void scrape().then(values => {
      told = values
    })
    await clock.advance(999)
    assert.is(told, undefined)
    await clock.advance(1)
    assert.equal(told, [])
    await clock.advance(10_000)
  }
  assert.is(asked.length, 1)
  answer.resolve({ a: { waiting: 2, running: 0 } })
  await turn()
  assert.equal(await scrape(), ['a waiting 2', 'a running 0'])
})

test.run()
