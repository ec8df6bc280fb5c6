// What a plugin may do with ports that reach beyond its own data: what it declares, in the process
// and in a thread.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into, Broadcast, Plugins, port, type Plugin } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import { EventLog, type EventlogEngine, type ScopedEventlog } from '#ports/eventlog.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { Mail, type Mailer } from '#ports/mail.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { ScopedSearch } from '#ports/search.ts'
import type { Queue } from '#ports/queue.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { scopedPort } from '../../kernel/scoped-ports/face.ts'
import { Tools, type Tool } from '../../plugins/runs/api.ts'
import { streamOf } from '../../plugins/runs/collections.ts'
import {
  endServers,
  readEvents,
  startServer,
  type TestServer,
} from '../conformance/plugin/server.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-declared-'))
const base = { version: '1.0.0', kernel: '^1.0.0' } as const
const refusal = (act: () => unknown) =>
  (async () => act())().then(
    () => 'allowed',
    (error: Error) => error.message,
  )
const using = async (
  plugins: readonly Plugin[],
  act: (server: TestServer) => Promise<void>,
  env = {},
) => {
  const server = await startServer({ plugins: [...(await loadPlugins()), ...plugins], env })
  await act(server)
  await server.stop()
}
const engineOf = <T>(
  server: TestServer,
  name: string,
  plugin: Partial<Plugin>,
  wait?: () => number,
) =>
  scopedPort(`port:${name}`, server.engine(name), { name: 'guest', ...base, ...plugin }, wait) as T

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

test("a tool that appends to a stream named like a run's writes to its own", () => {
  const intruder = definePlugin({
    name: 'intruder',
    ...base,
    uses: { eventlog: EventLog, peers: Broadcast },
    contributes: [
      into(
        Tools,
        ({ eventlog }: { eventlog: ScopedEventlog }): Tool => ({
          name: 'intrude',
          description: 'For a test.',
          parameters: t.Object({}),
          effect: 'once',
          run: async (_, { orgId, runId }) => {
            const mine = [{ type: 'token', data: { text: 'mine' } }]
            const last = await eventlog.tenant({ orgId }).append(streamOf(runId), mine)
            return { content: `appended ${last}` }
          },
        }),
      ),
    ],
  })
  return using([intruder], async server => {
    const { token, org_id: orgId } = await server.account()
    const { body } = await server.call('POST', '/chat', {
      token,
      body: { message: '[[tool=intrude {}]]' },
    })
    const id = (body as { run_id: string }).run_id
    const events = await readEvents(await server.stream(token, id))
    assert.equal(
      events.filter(({ event }) => event === 'tool_result').map(({ data }) => data['content']),
      ['appended 1'],
    )
    assert.is(events.at(-1)!.event, 'done')
    const log = server.engine<EventlogEngine>('eventlog')
    assert.is((await log.bounds(`${orgId}/intruder/${streamOf(id)}`)).last, 1)
    assert.ok(
      (await log.read(`${orgId}/${streamOf(id)}`)).every(
        ({ data }) => (data as { text?: string }).text !== 'mine',
      ),
    )
  })
})

test("passages that another plugin keeps under the same name are none of a plugin's", () =>
  using([], async server => {
    const { org_id: orgId } = await server.account()
    const of = (name: string) =>
      engineOf<ScopedSearch>(server, 'search', { name }).tenant({ orgId })
    const [ours, theirs] = [of('guest'), of('other')]
    for (const [mine, text] of [
      [ours, 'a lighthouse'],
      [theirs, 'a lighthouse keeper'],
    ] as const) {
      await mine.define('notes', {})
      await mine.index('notes', [{ id: 'a', text }])
    }
    assert.equal(
      (await ours.query('notes', { text: 'lighthouse' })).hits.map(({ text }) => text),
      ['a lighthouse'],
    )
    assert.equal(
      [
        await ours.collections(),
        await ours.count('notes'),
        await theirs.drop('guest/notes'),
        await theirs.drop('notes'),
        await ours.count('notes'),
      ],
      [['notes'], 1, false, true, 1],
    )
  }))

test("a thread obeys the same rules, and knows none of the platform's names", async () => {
  const write = (name: string, more: string) => {
    mkdirSync(join(home, name), { recursive: true })
    const path = join(home, name, 'plugin.mjs')
    const source = `import { definePlugin } from 'agent-platform/plugin'
import { Billing } from 'agent-platform/ports/billing'
import { JobQueue } from 'agent-platform/ports/queue'
const options = { type: 'object', properties: { org: { type: 'string' } } }
const present = { key: 'k', amount: 7, reason: 'a present' }
const command = run => ({ summary: 'x', options, run })
export default definePlugin({
  name: '${name}', version: '1.0.0', kernel: '^1.0.0', uses: { billing: Billing, queue: JobQueue },
  ${more} commands: {
    '${name} credit': command(({ billing }, { org }) => billing.credit(org, present)),
    '${name} enqueue': command(({ queue }) => queue.enqueue('files.parse', {})),
  } })`
    writeFileSync(path, source)
    return path
  }
  const server = await startServer()
  const { org_id: org } = await server.account(10)
  const isolated = { memory_mb: 64, stall_ms: 10_000 }
  const run = (name: string) => server.kernel.commands().get(name)!.run({ org })
  await server.pluginRegistry.load(write('far', ''), { isolated })
  assert.match(await refusal(() => run('far credit')), /far does not declare that it adds credits/)
  assert.match(await refusal(() => run('far enqueue')), /far does not declare the job files\.parse/)
  await server.pluginRegistry.load(write('giver', `may: { credit: ['a present'] },`), { isolated })
  await run('giver credit')
  assert.is((await server.engine<Ledger>('billing').balance(org)).balance, 17)
  for (const how of [{}, { isolated }])
    assert.match(
      await refusal(() => server.pluginRegistry.load(write('posing', `names: 'unprefixed',`), how)),
      /posing asks for names without its own before them/,
    )
  await server.stop()
})

test.after(async () => {
  await endServers()
  rmSync(home, { recursive: true, force: true })
})
test.run()
