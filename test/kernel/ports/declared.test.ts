// What a plugin may do with ports that reach beyond its own data: what it declares.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Plugins, port, type Plugin } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { Mail, type Mailer } from '#ports/mail.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { Queue } from '#ports/queue.ts'
import { endServers } from '../../conformance/plugin/server.ts'
import { base, engineOf, refusal, using } from './guest.ts'

test("credits: a plugin moves only what it declares, and ends no other plugin's hold", () =>
  using([], async server => {
    const { org_id: orgId } = await server.account(100)
    const engine = server.engine<Ledger>('billing')
    const poor = engineOf<Ledger>(server, 'billing', {})
    const rich = engineOf<Ledger>(server, 'billing', {
      may: { charge: 'for a test', credit: ['a present'] },
    })
    assert.match(
      await refusal(() => poor.credit(orgId, { key: 'k', amount: 5, reason: 'a present' })),
      /guest does not declare that it adds credits for this reason \(may\.credit\): a present/,
    )
    assert.match(
      await refusal(() => rich.credit(orgId, { key: 'k', amount: 5, reason: 'another' })),
      /may\.credit\): another/,
    )
    assert.match(
      await refusal(() => poor.hold(orgId, { of: 'x', amount: 5 })),
      /guest does not declare why it takes credits/,
    )
    assert.match(
      await refusal(() => rich.credit(orgId, { key: 'hold:x', amount: 5, reason: 'a present' })),
      /key/,
    )
    assert.match(
      await refusal(() => rich.hold('', { of: 'x', amount: 5 })),
      /without an organisation/,
    )
    assert.match(await refusal(() => rich.close()), /may not close/)
    assert.is((await poor.balance(orgId)).balance, 100)
    await engine.hold(orgId, { of: 'run', amount: 30 })
    assert.match(
      await refusal(() => rich.release(orgId, { of: 'run', reason: 'for free' })),
      /hold/,
    )
    assert.is((await rich.hold(orgId, { of: 'run', amount: 10 })).key, 'hold:guest:run')
    assert.is((await rich.entry(orgId, 'hold:run'))!.key, 'hold:guest:run')
    await rich.capture(orgId, { of: 'run', amount: 4, reason: 'done' })
    await rich.credit(orgId, { key: 'present', amount: 5, reason: 'a present' })
    assert.equal(await engine.balance(orgId), { balance: 101, held: 30, available: 71 })
  }))

test("jobs, schedules and rate limits are the plugin's own", () =>
  using([], async server => {
    const job = { run: async () => undefined }
    const queue = engineOf<Queue>(server, 'queue', { jobs: { 'guest.job': job } })
    const all = server.engine<Queue>('queue')
    const nightly = { name: 'guest.job', data: null, cron: '0 3 * * *', timezone: 'UTC' }
    assert.match(
      await refusal(() => queue.enqueue('files.parse', {})),
      /guest does not declare the job files\.parse/,
    )
    assert.match(
      await refusal(() => queue.schedule('x', { ...nightly, name: 'files.sweep' })),
      /does not declare the job files\.sweep/,
    )
    assert.match(
      await refusal(() => queue.define('guest.job', async () => undefined)),
      /declares its jobs/,
    )
    assert.is(typeof (await queue.enqueue('guest.job', {})), 'string')
    await queue.schedule('files.sweep', nightly)
    assert.is(await queue.unschedule('files.sweep'), true)
    assert.is(
      await all.unschedule('files.sweep'),
      true,
      'the schedule of another plugin under that name is still there',
    )
    const limits = engineOf<RateLimiter>(server, 'limits', {
      limits: { calls: { count: 1, perMs: 1000 } },
    })
    assert.match(
      await refusal(() => limits.reset('login', 'a@example.org')),
      /guest does not declare the rate limit login/,
    )
    assert.is(await limits.take('calls', 'a', { count: 1, perMs: 1000 }), 0)
  }))

test('emails and models are for those who say why, and emails are counted', () =>
  using([], async server => {
    const letter = { to: 'a@example.org', subject: 'x', text: 'x' }
    let waitMs = 0
    const mail = engineOf<Mailer>(server, 'mail', { may: { mail: 'for a test' } }, () => waitMs)
    assert.match(
      await refusal(() => engineOf<Mailer>(server, 'mail', {}).send(letter)),
      /guest does not declare what it sends emails for/,
    )
    assert.is(await refusal(() => mail.send(letter)), 'allowed')
    waitMs = 5000
    assert.match(await refusal(() => mail.send(letter)), /5/)
    const models = engineOf<ModelProvider>(server, 'models', {})
    assert.ok((await models.catalogue()).length > 0)
    assert.match(
      await refusal(() => models.stream({} as never)),
      /guest does not declare why it asks models/,
    )
  }))

for (const [why, plugin, sentence] of [
  [
    'emails without a purpose',
    { uses: { mail: Mail } },
    /^guest needs port:mail and does not declare what for \(may: \{ mail: '…' \}\)\.$/,
  ],
  [
    'the set of plugins without a purpose',
    { uses: { plugins: Plugins } },
    /^guest needs port:plugins and does not declare what for/,
  ],
  [
    'the HTTP server itself',
    { uses: { http: port('http') } },
    /^guest needs port:http, which is the platform's alone/,
  ],
  [
    "another plugin's rate limit",
    { limits: { login: { count: 1, perMs: 1000 } } },
    /^The rate limit login is claimed by identity and guest\.$/,
  ],
  [
    'names without its own before them',
    { names: 'unprefixed' },
    /^The right to names without a prefix is claimed by runs and guest\.$/,
  ],
] as const)
  test(`${why} is refused when the plugin is loaded`, async () => {
    assert.match(
      await refusal(() =>
        using([{ name: 'guest', ...base, ...plugin } as Plugin], async () => undefined),
      ),
      sentence,
    )
  })

test('the limit of emails holds for all that a plugin sends', () => {
  const sender = definePlugin({
    name: 'sender',
    ...base,
    uses: { mail: Mail },
    may: { mail: 'for a test' },
    commands: {
      'send one': {
        summary: 'Sends.',
        options: t.Object({}),
        run: ({ mail }: { mail: Mailer }) =>
          mail.send({ to: 'a@example.org', subject: 'x', text: 'x' }) as Promise<unknown>,
      },
    },
  })
  return using(
    [sender],
    async server => {
      const send = () => server.kernel.commands().get('send one')!.run({})
      await send()
      await send()
      assert.match(await refusal(send), /emails/)
    },
    { MAIL_PER_PLUGIN_PER_HOUR: '2' },
  )
})

test.after(endServers)
test.run()
