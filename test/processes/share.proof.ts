// Two processes that answer requests and two that drive runs, on one MongoDB, two of them with a
// clock five minutes ahead.
// RUNS=4000 for more than the tests take.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { seenIn } from '../durability/client.ts'
import type { Env } from '../durability/round.ts'
import { commandLine } from '../support/process.ts'
import { endClusters, startCluster } from './cluster.ts'
import { openJournals } from './journals.ts'
import { openStore } from './store.ts'

const runs = Number(process.env['RUNS'] ?? 80)
const ahead: Env = { CLOCK_URL: 'system:?ahead_ms=300000' }

const store = await openStore()
if ('why' in store) test.skip(`several processes (${store.why})`, () => undefined)
else {
  const { database } = store
  const closing: (() => Promise<void>)[] = []

  test(`${runs} runs: one process drives each, another follows it, sessions in order`, async () => {
    const cluster = await startCluster(
      database.url.href,
      ['api', ['api', ahead], 'worker', ['worker', ahead]],
      {
        MODELS_URL: 'scripted:?tokens=5&interval_ms=5',
        RUNS_SWEEP_MS: '2000',
        RUNS_LEASE_MS: '10000',
      },
    )
    const { client } = cluster
    // Four in a row in each conversation, sent without waiting for an answer.
    const conversations = await Promise.all(
      Array.from({ length: runs / 4 }, async (_, i) => {
        const first = await client.start(`c${i}-0`)
        const started = [first]
        for (let n = 1; n < 4; n++)
          started.push(
            await client.start(`c${i}-${n}`, {
              message: `number ${n}`,
              session_id: first.session_id,
            }),
          )
        const followed = started.map((one, n) => client.follow(one, `c${i}-${n}`))
        await Promise.all(followed.map(({ over }) => over))
        return followed.map(({ follower }) => follower)
      }),
    )
    const drivers = new Set<string>()
    const journals = await openJournals(database, cluster.orgId)
    closing.push(journals.close)
    await Promise.all(
      conversations.map(async followers => {
        const read: number[] = []
        for (const { runId, key, frames, repeated } of followers) {
          const {
            takes,
            by: [driver],
            log,
          } = await journals.of(runId)
          const seen = [...frames.values()].map(seenIn)
          assert.equal([takes, repeated], [[1], []], `${key}: one process drove it, once`)
          drivers.add(driver!.split('/')[0]!)
          assert.equal(
            seen.map(({ id }) => id),
            log.filter(({ hidden }) => !hidden).map(({ seq }) => seq),
            `${key}: its reader saw everything`,
          )
          assert.equal([seen.at(-1)!.type, seen.at(-1)!.data['status']], ['done', 'done'], key)
          read.push(Number(seen.find(({ type }) => type === 'usage')!.data['input_tokens']))
        }
        // Each had all the answers before it in front of it.
        assert.ok(
          read.every((tokens, n) => n === 0 || tokens > read[n - 1]!),
          `first in, first out: ${read}`,
        )
      }),
    )
    assert.is(drivers.size, 2, 'both workers took part')
    const {
      ok,
      runs: checked,
      told,
    } = await commandLine<{ ok: boolean; runs: number; told: unknown[] }>(['verify'], cluster.env)
    assert.equal([ok, checked, told], [true, runs, []])
    assert.equal(await client.balance(), {
      balance: cluster.credits - runs,
      held: 0,
      available: cluster.credits - runs,
    })
  })

  test.after(async () => {
    await endClusters()
    for (const close of closing) await close()
    await store.close()
  })
}
test.run()
