import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { nextTime } from './cron.ts'

const at = (text: string) => Date.parse(text)
const times = (cron: string, zone: string, from: string, count: number) => {
  const found: string[] = []
  for (
    let time = at(from);
    found.length < count;
    found.push(new Date(time).toISOString().slice(0, 16))
  )
    time = nextTime(cron, zone, time)
  return found
}

test('a local time comes once a day, also where summer time begins or ends', () => {
  assert.equal(times('30 2 * * *', 'Europe/Berlin', '2030-10-26T12:00:00Z', 3).length, 3)
  const autumn = times('30 2 * * *', 'Europe/Berlin', '2030-10-26T12:00:00Z', 3)
  assert.equal(new Set(autumn.map(time => time.slice(0, 10))).size, 3, autumn.join())
  const spring = times('30 2 * * *', 'Europe/Berlin', '2030-03-29T12:00:00Z', 4)
  assert.ok(spring.length === 4 && at(`${spring[3]}Z`) <= at('2030-04-03T00:00:00Z'), spring.join())
  assert.equal(times('0 9 * * 1-5', 'America/New_York', '2030-03-08T15:00:00Z', 2), [
    '2030-03-11T13:00',
    '2030-03-12T13:00',
  ])
})

test('the time given is not its own next', () => {
  assert.is(nextTime('* * * * *', 'UTC', at('2030-01-01T00:00:00Z')), at('2030-01-01T00:01:00Z'))
})

test.run()
