// Two processes on one storage: one only answers requests, the other only drives runs.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  endEngines,
  lasting,
  saidIn,
  startEngine,
  typesOf,
  until,
} from '../../../test/support/engine.ts'
import {
  called,
  calls,
  door,
  lastWords,
  resultsIn,
  says,
  type Play,
} from '../../../test/support/scripted-model.ts'
import { Runs } from '../collections.ts'

const play: Play = request => says(`heard: ${lastWords(request)}`)
const shared = { AUTH_SECRET: 'the same for both of them, as it must be' }
/** Two processes on one storage. Neither can tell whether the other is on the same machine. */
async function pair(workerPlay: Play = play, env: Record<string, string> = {}) {
  const given = lasting({ exclusive: false })
  const api = await startEngine(
    () => {
      throw new Error('nothing is driven here')
    },
    { given, env: { ...shared, ...env, ROLE: 'api' } },
  )
  const worker = await startEngine(workerPlay, {
    given,
    who: api.who,
    env: { ...shared, ...env, ROLE: 'worker' },
  })
  return { api, worker }
}

test('what one process takes in another drives, and the first shows it as it comes', async () => {
  const { api, worker } = await pair()
  const list = await api.answered('good morning')
  assert.is(saidIn(list), 'heard: good morning')
  assert.equal(typesOf(list).slice(-2), ['usage', 'done'])
  assert.is(worker.model.requests.length, 1)
  assert.equal((await api.balance()).held, 0)
  await Promise.all([api.stop(), worker.stop()])
})

test('a worker answers whether it is well, and nothing else', async () => {
  const { api, worker } = await pair()
  const statusOf = async (path: string) =>
    (await worker.call('GET', path, { token: api.who.token })).status
  assert.equal(
    await Promise.all(
      ['/healthz', '/readyz', '/metrics', '/sessions', '/docs', '/balance'].map(statusOf),
    ),
    [200, 200, 200, 404, 404, 404],
  )
  await Promise.all([api.stop(), worker.stop()])
})

// Beats and sweeps are too slow to help within the time of these tests.
const unhelped = { RUNS_LEASE_MS: '600000', RUNS_SWEEP_MS: '600000' }

test('a run is stopped at a process that does not drive it', async () => {
  const held = door()
  async function* silent() {
    await held.passed
    yield* says('too late')
  }
  const { api, worker } = await pair(silent, unhelped)
  const { run_id: runId } = await api.chat('say nothing')
  await worker.model.asked(1)
  const { body } = await api.call('POST', `/runs/${runId}/cancel`, { token: api.who.token })
  assert.equal(body, { run_id: runId, status: 'running', cancelling: true })
  assert.equal((await api.read(runId)).at(-1)!.data['status'], 'cancelled')
  held.open()
  await Promise.all([api.stop(), worker.stop()])
})

test('a question is answered at a process that does not drive the run', async () => {
  const { api, worker } = await pair(
    request =>
      resultsIn(request).length === 0
        ? calls(called('c1', 'ask_user', { question: 'Which?', options: ['red', 'blue'] }))
        : says(`so ${resultsIn(request)[0]}`),
    unhelped,
  )
  const { run_id: runId } = await api.chat('ask me')
  const [asked] = (await api.read(runId, ({ event }) => event === 'user_choice')).slice(-1)
  await until('nobody drives it', async () => (await api.run(runId)).status === 'waiting')
  assert.is(
    (
      await api.call('POST', `/runs/${runId}/respond`, {
        token: api.who.token,
        body: { question_id: asked!.data['question_id'], answer: 'b' },
      })
    ).status,
    200,
  )
  assert.match(saidIn(await api.read(runId)), /^so .*blue/s)
  await Promise.all([api.stop(), worker.stop()])
})

test('runs that no worker takes are let in up to a bound', async () => {
  const given = lasting({ exclusive: false })
  const api = await startEngine(play, {
    given,
    env: { ...shared, ROLE: 'api', RUNS_WAITING_MAX: '3' },
  })
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) statuses.push((await api.start(`run ${i}`)).status)
  assert.equal(statuses, [200, 200, 200, 429, 429])
  assert.is(await api.storage.count(Runs), 3)
  const worker = await startEngine(play, {
    given,
    who: api.who,
    env: { ...shared, ROLE: 'worker' },
  })
  await until(
    'they are all over',
    async () => (await api.storage.count(Runs, { phase: 'closed' })) === 3,
  )
  await until('others are let in again', async () => (await api.start('another')).status === 200)
  await Promise.all([api.stop(), worker.stop()])
})

test.after(endEngines)
test.run()
