// `verify` on a running installation: it finds nothing after normal use, and finds what was
// tampered with.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { readEvents, startServer } from '../../../test/conformance/plugin/server.ts'
import { endEngines, startEngine } from '../../../test/support/engine.ts'
import { says } from '../../../test/support/scripted-model.ts'
import { Runs, streamOf, type Run } from '../collections.ts'
import { ending, event as shown, leaseTaken } from '../journal/records.ts'
import type { Verified } from './verify-command.ts'

const server = await startServer({
  env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000', RUNS_SWEEP_MS: '50' },
})
const who = await server.account(100)
const storage = server.engine<StorageEngine>('storage')
const eventlog = server.engine<EventlogEngine>('eventlog')
const verify = () => server.kernel.commands().get('verify')!.run({}) as Promise<Verified>
const chat = async (message: string) =>
  (
    (await server.call('POST', '/chat', { token: who.token, body: { message } })).body as {
      run_id: string
    }
  ).run_id
const ended = async (message: string): Promise<Run> => {
  const id = await chat(message)
  await readEvents(await server.stream(who.token, id))
  return (await storage.get(Runs, id))!
}
/** Rewrites the run's log with a change. */
const rewrite = async (
  run: Run,
  change: (
    log: Awaited<ReturnType<EventlogEngine['read']>>,
  ) => Awaited<ReturnType<EventlogEngine['read']>>,
) => {
  const stream = `${run.orgId}/${streamOf(run.id)}`
  const log = await eventlog.read(stream)
  await eventlog.remove(stream)
  await eventlog.append(
    stream,
    change(log).map(({ type, data, hidden }) => ({ type, data, ...(hidden ? { hidden } : {}) })),
  )
}

test('an installation in use is clean', async () => {
  for (const message of [
    'plain',
    '[[tool=calculator {"expression":"1+1"}]]',
    '[[fail_after=2]]',
    '[[fail_after=0]]',
  ])
    await ended(message)
  const waiting = await chat('[[tool=ask_user {"question":"Which?","options":["a","b"]}]]')
  await readEvents(await server.stream(who.token, waiting), ({ event }) => event === 'user_choice')
  const found = await verify()
  assert.equal(found.told, [])
  assert.equal([found.ok, found.runs, found.organisations], [true, 5, 1])
  assert.ok(found.events > 30 && found.entries >= 10)
})

for (const [name, what, change] of [
  ['a second end', /2 terminal events/, log => [...log, log.at(-1)!]],
  [
    'something after the end',
    /follows the terminal event/,
    log => [...log, log.find(({ type }) => type === 'token')!],
  ],
  ['a lost usage', /ended without its usage/, log => log.filter(({ type }) => type !== 'usage')],
  [
    'other credits',
    /9 credits were told, 1 were taken/,
    log =>
      log.map(one =>
        one.type === 'usage' ? { ...one, data: { ...(one.data as object), credits: 9 } } : one,
      ),
  ],
  [
    'a token of an attempt that never began',
    /of attempt 7/,
    log =>
      log.map(one =>
        one.type === 'token' ? { ...one, data: { ...(one.data as object), attempt: 7 } } : one,
      ),
  ],
] as [
  string,
  RegExp,
  (log: Awaited<ReturnType<EventlogEngine['read']>>) => Awaited<ReturnType<EventlogEngine['read']>>,
][])
  test(`it sees ${name}`, async () => {
    const run = await ended('plain')
    const stream = `${run.orgId}/${streamOf(run.id)}`
    const whole = await eventlog.read(stream)
    await rewrite(run, change)
    const { ok, told } = await verify()
    assert.is(ok, false)
    assert.ok(
      told.some(one => one.run_id === run.id && what.test(one.what)),
      JSON.stringify(told),
    )
    await rewrite(run, () => whole)
    assert.is((await verify()).ok, true)
  })

test('verify tells of a run that has ended and was never closed', async () => {
  const idle = await startEngine(() => says('x'), { env: { RUNS_SWEEP_MS: '600000' } })
  const usage = { inputTokens: 0, outputTokens: 0 }
  const records = [
    leaseTaken(1),
    ending({ terminal: { type: 'done', status: 'done' }, usage, charged: false }),
    shown('usage', {
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      credits: 0,
      model: 'puppet',
      model_calls: 0,
    }),
    shown('done', { status: 'done', session_id: crypto.randomUUID() }),
  ]
  const run = await idle.left(records)
  const { told } = (await idle.kernel.commands().get('verify')!.run({})) as {
    told: { run_id: string; what: string }[]
  }
  assert.ok(
    told.some(
      ({ run_id: id, what }) => id === run.id && what === 'it ended, and it was never closed',
    ),
    JSON.stringify(told),
  )
  await idle.stop()
})

test.after(async () => {
  await endEngines()
  await server.stop()
})
test.run()
