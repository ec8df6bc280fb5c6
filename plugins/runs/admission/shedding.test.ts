// Four times as many starts as there is room for, on real storage. Some are refused, none is lost,
// and no run waits behind more than the line holds.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endEngines, type Started, startEngine, until } from '../../../test/support/engine.ts'
import { door, lastWords, says } from '../../../test/support/scripted-model.ts'
import type { Account, Answer } from '../../../test/conformance/plugin/server.ts'
import type { Verified } from '../verify/verify-command.ts'

const caps = {
  RUNS_ACTIVE_MAX: 4,
  RUNS_ACTIVE_PER_ORG_MAX: 2,
  RUNS_WAITING_MAX: 8,
  RUNS_WAITING_PER_ORG_MAX: 3,
}
const room = caps.RUNS_ACTIVE_MAX + caps.RUNS_WAITING_MAX
const each = 12
const doors: ReturnType<typeof door>[] = []
let opened = 0
/** By message: how many answers were released before the model was asked. */
const begun = new Map<string, number>()
const engine = await startEngine(
  async function* (request, asked) {
    begun.set(lastWords(request), opened)
    await (doors[asked] = door()).passed
    yield* says('answered')
  },
  {
    env: {
      ...Object.fromEntries(Object.entries(caps).map(([name, value]) => [name, String(value)])),
      STORAGE_URL: 'sqlite:',
      RUNS_SWEEP_MS: '600000',
      RUNS_LEASE_MS: '600000',
    },
  },
)

type Client = {
  readonly by: Account
  readonly key: string
  message: string
  started?: Started
  /** How many answers were released before this start was accepted. */
  acceptedAt?: number
}
const people = [engine.who, await engine.account(), await engine.account(), await engine.account()]
const clients: Client[] = Array.from({ length: each * people.length }, (_, i) => ({
  by: people[i % people.length]!,
  key: `key-${i}`,
  message: `message ${i}`,
}))
const attempt = async (client: Client): Promise<Answer> => {
  const acceptedAt = opened
  const answer = await engine.start(client.message, { idempotency_key: client.key }, client.by)
  if (answer.status === 200) Object.assign(client, { started: answer.body, acceptedAt })
  return answer
}
const accepted = () => clients.filter(({ started }) => started)
const refused = () => clients.filter(({ started }) => !started)

test('beyond places and line a start gets 429 with the time to wait, and is not kept', async () => {
  const answers = await Promise.all(clients.map(attempt))
  // All start at once. A few may pass the check before the first joins the line, and the line has
  // room for these.
  assert.ok(
    accepted().length >= room && accepted().length <= room + caps.RUNS_ACTIVE_MAX,
    `${accepted().length} of ${clients.length} were accepted`,
  )
  for (const { status, body, headers } of answers.filter(answer => answer.status !== 200)) {
    assert.equal([status, (body as { code: string }).code], [429, 'SHEDDING'])
    assert.match(headers.get('retry-after')!, /^[1-9]\d?$/)
  }
  assert.is(await engine.gauge('runs_shed_total'), refused().length)
  await engine.model.asked(caps.RUNS_ACTIVE_MAX)
  assert.equal(
    [
      await engine.gauge('runs_active{state="active"}'),
      await engine.gauge('runs_active{state="waiting"}'),
    ],
    [caps.RUNS_ACTIVE_MAX, accepted().length - caps.RUNS_ACTIVE_MAX],
  )
  for (const by of people)
    assert.is((await engine.balance(by)).held, accepted().filter(client => client.by === by).length)
})

test('the key of an accepted run gives that run, however full the process is', async () => {
  for (const client of accepted()) {
    const { status, body } = await engine.start(
      client.message,
      { idempotency_key: client.key },
      client.by,
    )
    assert.equal(
      [status, (body as Started).run_id, (body as Started).resumed],
      [200, client.started!.run_id, true],
    )
  }
})

test('refused starts get in later with their keys, after a bounded number of others', async () => {
  // The key of a refused start is free: another request may use it.
  for (const client of refused()) client.message += ', said in another way'
  const again = refused()
  const wasRefused = new Set(again)
  while (opened < clients.length) {
    await engine.model.asked(opened + 1)
    const message = lastWords(engine.model.requests[opened]!)
    const client = accepted().find(one => one.message === message)!
    doors[opened++]!.open()
    assert.is(
      (await engine.read(client.started!.run_id, undefined, client.by)).at(-1)!.data['status'],
      'done',
    )
    const [first] = again
    if (!first) continue
    const { status, body } = await attempt(first)
    if (status === 200) assert.is((body as Started).resumed, false)
    else assert.equal([status, (body as { code: string }).code], [429, 'SHEDDING'])
    again.push(again.shift()!)
    if (status === 200) again.pop()
  }
  assert.ok(
    [...wasRefused].every(({ started }) => started),
    'all were accepted in the end',
  )
  assert.is(
    new Set(engine.model.requests.map(lastWords)).size,
    clients.length,
    'each was driven, and once',
  )
  assert.is(engine.model.requests.length, clients.length)
  // Before a run's turn, all runs of its organisation that waited before it have ended, and one
  // that was driven. That is as many as the organisation may have in line.
  // Answers are released in the order of the model calls. Between two ends of one organisation's
  // runs, at most `RUNS_ACTIVE_MAX` runs end. The last summand is for starts that came at once.
  const most = caps.RUNS_WAITING_PER_ORG_MAX * caps.RUNS_ACTIVE_MAX + caps.RUNS_ACTIVE_MAX
  for (const { message, acceptedAt } of clients)
    assert.ok(
      begun.get(message)! - acceptedAt! <= most,
      `${message} waited for ${begun.get(message)! - acceptedAt!} others`,
    )
})

test('afterwards everything is free and paid once', async () => {
  await until(
    'all have left',
    async () => (await engine.gauge('runs_active{state="active"}')) === 0,
  )
  for (const by of people)
    assert.equal(await engine.balance(by), {
      balance: 1000 - each,
      held: 0,
      available: 1000 - each,
    })
  assert.equal(((await engine.kernel.commands().get('verify')!.run({})) as Verified).told, [])
})

test.after(endEngines)
test.run()
