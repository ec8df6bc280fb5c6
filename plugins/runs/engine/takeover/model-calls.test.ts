// How a driver continues the model call of another, and when the run is given up. Journals are made
// by hand, end where a process may die, and are then driven over the real server.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn, typesOf } from '../../../../test/support/engine.ts'
import type { Verified } from '../../verify/verify-command.ts'
import { checkpointed, event, modelCallAccepted, leaseTaken } from '../../journal/records.ts'
import { startTakeover } from '../../../../test/support/runs/takeover.ts'

const { engine, goOn } = await startTakeover()

test("a dead process's answer is resumed at the provider, and readers are told", async () => {
  const { list, asked } = await goOn([
    leaseTaken(1),
    event('token', { text: 'one ', step: 0, attempt: 1 }),
    checkpointed({ step: 0, attempt: 1, response: 'r', at: 1 }),
    event('token', { text: 'hea', step: 0, attempt: 1 }),
  ])
  assert.equal(dataOf(list, 'superseded'), [
    { step: 0, attempt: 1, keep: 7, reason: 'interrupted' },
  ])
  assert.equal(
    asked.map(({ resume }) => resume),
    [{ response: 'r', at: 1 }],
  )
  assert.equal(
    dataOf(list, 'token').map(({ attempt, text }) => [attempt, text]),
    [[2, 'rd: ']],
    'what was shown is not shown again',
  )
})

test('nothing had come: the call is made as if for the first time', async () => {
  const { list, asked } = await goOn([leaseTaken(1)])
  assert.equal(
    [typesOf(list), asked.length, dataOf(list, 'token')[0]!['attempt']],
    [['token', 'usage', 'done'], 1, 1],
  )
})

test('an accepted answer is not asked for again', async () => {
  const { list, asked, run } = await goOn([
    leaseTaken(1),
    event('token', { text: 'all of it', step: 0, attempt: 1 }),
    modelCallAccepted({ step: 0, attempt: 1, finish: 'stop', input_tokens: 1, output_tokens: 3 }),
  ])
  assert.equal(
    [typesOf(list), asked, (await engine.run(run.id)).answer],
    [['usage', 'done'], [], 'all of it'],
  )
})

const drivers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => leaseTaken(from + i))
const said = event('token', { text: 'one ', step: 0, attempt: 1 })
test('a run that so many drivers took over in vain is given up, and costs nothing', async () => {
  const { balance } = await engine.balance()
  const { list, asked } = await goOn(drivers(1, 3), { epoch: 3 })
  assert.equal(
    [
      dataOf(list, 'error').map(({ code }) => code),
      dataOf(list, 'usage').map(({ credits }) => credits),
      asked,
    ],
    [['RUN_STUCK'], [0], []],
  )
  assert.match(String(list.at(-1)!.data['detail']), /no progress in 4 starts/)
  assert.equal(await engine.balance(), { balance, held: 0, available: balance })
})

test('one driver fewer, or anything new in between, and it goes on', async () => {
  for (const records of [drivers(1, 2), [...drivers(1, 3), said, ...drivers(4, 5)]]) {
    const { list } = await goOn(records, { epoch: records.length })
    assert.is(list.at(-1)!.event, 'done', JSON.stringify(list.at(-1)))
  }
  const { list } = await goOn([...drivers(1, 3), said, ...drivers(4, 6)], { epoch: 6 })
  assert.is(list.at(-1)!.data['code'], 'RUN_STUCK', 'the count begins anew; it does not end')
})

test('whatever its drivers left, what readers are told adds up', async () => {
  const { list } = await goOn([leaseTaken(1), said, leaseTaken(2)], { epoch: 2 })
  const verified = (await engine.kernel.commands().get('verify')!.run({})) as Verified
  assert.is(saidIn(list), 'heard: ')
  assert.equal(verified.told, [])
})

test.after(endEngines)
test.run()
