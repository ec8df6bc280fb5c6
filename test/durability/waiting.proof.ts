// A run that waits for its user under a server that dies: nobody drives it, it takes no place, and
// the answer that was taken is not lost.
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startProcess } from '../support/process.ts'
import { sawItWhole, verifiesClean } from './checks.ts'
import { pause } from './client.ts'
import { endRounds, open } from './round.ts'

/** The run's own document, with nobody around who could change it. */
function documentOf(
  dataDir: string,
  runId: string,
): { status: string; phase: string; epoch: number; replies: number; owner?: string; due?: number } {
  const database = new DatabaseSync(join(dataDir, 'platform.db'))
  const row = database.prepare('SELECT doc FROM c_runs WHERE id = ?').get(runId) as { doc: string }
  database.close()
  return JSON.parse(row.doc) as ReturnType<typeof documentOf>
}

test('a run that waits for its user outlives kills without a driver or a place', async () => {
  const { env, server: first, client } = await open({ RUNS_ACTIVE_MAX: '1', RUNS_SWEEP_MS: '50' })
  let server = first
  let question: string | undefined
  const again = async () => {
    await server.kill('SIGKILL')
    const found = documentOf(env['DATA_DIR']!, runId)
    server = await startProcess(env)
    return found
  }
  const statusOf = async (sessionId: string) =>
    (await client.get<{ runs: { status: string }[] }>(`/sessions/${sessionId}`)).runs[0]!.status
  const started = await client.start('asks', {
    message:
      '[[tools=[["ask_user",{"question":"Which?","options":["red","blue"]}],' +
      '["note",{"title":"after","text":"x"}]]]]',
  })
  const runId = started.run_id
  const { follower, over } = client.follow(started, 'asks', ({ type, data }) => {
    if (type === 'user_choice') question = data['question_id'] as string
  })
  while (question === undefined || (await statusOf(started.session_id)) !== 'waiting')
    await pause(20)

  const { due, ...asked } = await again()
  assert.equal(asked.owner, undefined)
  assert.equal([asked.phase, asked.status], ['placed', 'waiting'])
  assert.ok(due! > Date.now(), 'nobody looks at it before its deadline')
  // Its place would be the only one.
  for (const key of ['meanwhile', 'later']) await client.follow(await client.start(key), key).over
  // A run leaves its place after its last event: soon, not at once.
  while (
    !/^runs_active\{state="active"\} 0$/m.test(await (await fetch(`${server.base}/metrics`)).text())
  )
    await pause(20)
  assert.equal(await again(), { ...asked, due }, 'nothing has touched it')
  assert.is(await statusOf(started.session_id), 'waiting')
  assert.is((await client.balance()).held, 1)

  const { status } = await client.ask('POST', `/runs/${runId}/respond`, {
    question_id: question,
    answer: 'b',
  })
  assert.is(status, 200)
  assert.is((await again()).replies, 1, 'an answer that was taken is on disk')
  await over
  const log = await sawItWhole(client, follower)
  assert.equal(
    log
      .filter(({ type }) => type === 'choice_answer')
      .map(({ data }) => [data['question_id'], data['answer']]),
    [[question, 'b']],
  )
  assert.equal(
    log.filter(({ type }) => type === 'tool_result').map(({ data }) => data['status']),
    ['ok', 'ok'],
  )
  assert.is(log.at(-1)!.data['status'], 'done')
  assert.is((await client.all(`/sessions/${started.session_id}/artifacts`)).length, 1)
  const { balance, held } = await client.balance()
  assert.equal([balance, held], [9_997, 0])
  await verifiesClean(env, 3)
})

test.after(endRounds)
test.run()
