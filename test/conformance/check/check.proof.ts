import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { checkAdapter } from './check.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-check-test-'))
const check = (port: string, url: string, more: Partial<Parameters<typeof checkAdapter>[0]> = {}) =>
  checkAdapter({ port, url, folders: [home], env: {}, ...more })
const named = (report: Awaited<ReturnType<typeof check>>, result: string) =>
  report.checks.filter(one => one.result === result).map(one => one.check)
const ours = (path: string) =>
  JSON.stringify(pathToFileURL(resolve(import.meta.dirname, '../../../adapters', path)).href)
/** An adapter as somebody else writes it: one of the house, with something changed. */
const adapter = (
  port: string,
  scheme: string,
  { from, facts = '', change = 'engine' }: { from: string; facts?: string; change?: string },
) => {
  mkdirSync(join(home, port), { recursive: true })
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(home, port, `${scheme}.js`),
    `import house from ${ours(from)}
export default { ...house, port: '${port}', scheme: '${scheme}', ${facts} open: async opening => {
  const engine = await house.open(opening)
  return ${change}
} }\n`,
  )
}

test('every adapter of the house keeps the promises of its port', async () => {
  for (const [port, url, holds, unsupported, more] of [
    ['queue', 'storage:', 21, 0],
    ['queue', 'storage:', 21, 0, { on: `storage=sqlite:${home}/q{n}.db` }],
    ['billing', 'ledger:', 18, 0],
    ['billing', 'ledger:', 18, 0, { on: `storage=sqlite:${home}/b{n}.db` }],
    ['search', 'memory:', 37, 3],
    ['search', `sqlite:${home}/s{n}.db`, 37, 2],
    ['limits', 'memory:', 9, 0],
    ['clock', 'system:', 8, 0],
    ['clock', 'manual:', 8, 0],
    ['traces', 'off:', 4, 3],
    ['traces', 'otlp:http://127.0.0.1:9', 6, 1],
    ['mail', 'memory:', 9, 0],
    ['mail', `outbox:${home}/{n}`, 9, 0, { letters: `${home}/{n}` }],
    ['mail', 'outbox:', 3, 6],
  ] as const) {
    const report = await check(port, url, more)
    assert.equal(
      [report.ok, report.holds, report.unsupported, report.fails],
      [true, holds, unsupported, 0],
      `${port} ${url}: ${JSON.stringify(report.checks.filter(one => one.result === 'fails'))}`,
    )
  }
})

test('a broken one of each port fails by the name of what it does not keep', async () => {
  for (const [port, from, change, culprits] of [
    [
      'queue',
      'queue/storage.ts',
      '{ ...engine, cancel: async id => { await engine.cancel(id); return true } }',
      ['queue: a waiting job is cancelled, a running one is told, an ended one stays'],
    ],
    [
      'billing',
      'billing/ledger.ts',
      '{ ...engine, capture: (org, input) => engine.capture(org, { ...input, amount: ' +
        'input.amount + 1 }) }',
      [
        'billing: credits, holds, captures and releases carry the balance after them',
        'billing: amounts are whole, not negative, and add up to a safe number; keys of ' +
          'holds are theirs',
      ],
    ],
    [
      'limits',
      'limits/memory.ts',
      '{ ...engine, reset() {} }',
      [
        "limits: reset forgets one subject's count",
        'limits: closed, it refuses; closing twice is allowed; opened again, it serves',
      ],
    ],
    [
      'search',
      'search/memory.ts',
      '{ ...engine, within: org => { const own = engine.within(org); return { ...own, ' +
        'query: async (name, query) => { const { where, ...rest } = query, { hits, more } = ' +
        'await own.query(name, { ...rest, limit: 100, offset: 0 }), all = where ? new ' +
        'Set((await own.query(name, query)).hits.map(hit => hit.id)) : undefined; return { ' +
        'hits: hits.filter(hit => !all || all.has(hit.id)).slice(query.offset ?? 0).slice(0, ' +
        'query.limit ?? 10), more } } } } }',
      [
        'search: a filter loses nothing: what it lets through is found, however many are better',
        'search: pages are parts of one order, and more says whether there are further ones',
      ],
    ],
    [
      'search',
      'search/memory.ts',
      `{ ...engine, within: () => engine.within('everybody') }`,
      [
        "search: one organisation's collection is unknown to another, and weighs nothing there",
        'search: an organisation whose name is not plain is refused',
      ],
    ],
    [
      'traces',
      'traces/off.ts',
      '{ ...engine, span: (name, options, act) => engine.span(name, options, ' +
        'act).catch(error => { throw new Error("traced", { cause: error }) }) }',
      [
        'traces: work within a span is done once, and its answer or what it throws is what ' +
          'comes back',
      ],
    ],
    [
      'mail',
      'mail/memory.ts',
      '{ ...engine, send: (letter, more) => engine.send({ ...letter, to: "ann@example.org" ' +
        '}, more) }',
      [
        'mail: whatever could forge a header or reach another reader is refused',
        'mail: what was refused or aborted is not sent',
      ],
    ],
    [
      'clock',
      'clock/system.ts',
      '{ ...engine, id: () => crypto.randomUUID() }',
      [
        'clock: an id can be made to follow one from far ahead; later ids do not',
        'clock: ids are UUIDs of version 7, never repeat, and sort as they come',
      ],
    ],
    [
      'clock',
      'clock/system.ts',
      '{ ...engine, sleep: (ms, signal) => new Promise((done, failed) => { const timer = ' +
        'setTimeout(done, ms); signal?.addEventListener("abort", () => { ' +
        'clearTimeout(timer); failed(signal.reason) }) }) }',
      ['clock: a sleeper does not keep the process alive'],
    ],
  ] as const) {
    const scheme = `broken${culprits.length}${change.length}`
    adapter(port, scheme, { from, change })
    const report = await check(port, `${scheme}:`)
    const failed = named(report, 'fails')
    assert.is(report.ok, false, port)
    for (const culprit of culprits)
      assert.ok(failed.includes(culprit), `${port}: ${failed.join(' | ')}`)
    assert.ok(report.holds > 0, `${port}: not everything is wrong with it`)
  }
})

test('a letter that is lost fails where letters can be read back', async () => {
  adapter('mail', 'lossy', {
    from: 'mail/outbox.ts',
    change:
      '{ ...engine, send: async (letter, more) => { if (!/2[0-9]$/.test(letter.subject)) ' +
      'await engine.send(letter, more) } }',
  })
  assert.equal(
    named(await check('mail', `lossy:${home}/{n}`, { letters: `${home}/{n}` }), 'fails'),
    ['mail: many letters at once all arrive'],
  )
})

test('what an adapter cannot be asked is skipped with its reason; the rest is asked', async () => {
  adapter('billing', 'alone', { from: 'billing/ledger.ts', facts: 'exclusive: true,' })
  adapter('limits', 'remote', { from: 'limits/memory.ts', facts: 'externalClock: true,' })
  adapter('queue', 'remote', {
    from: 'queue/storage.ts',
    facts: 'externalClock: true, exclusive: true,',
  })
  writeFileSync(
    join(home, 'queue', 'whole.js'),
    `import house from ${ours('queue/storage.ts')}\nimport storage from ${ours('storage/memory.ts')}
export default { ...house, scheme: 'whole', needs: [], ephemeral: true, open: async opening => {
  const below = await storage.open(opening)
  return house.open({ ...opening, engine: () => below })
} }\n`,
  )
  for (const [port, url, holds, reasons] of [
    ['billing', 'alone:', 12, { 'one process at a time': 6 }],
    ['limits', 'remote:', 3, { 'a clock of its own': 6 }],
    ['queue', 'remote:', 8, { 'a clock of its own': 7, 'one process at a time': 6 }],
    ['queue', 'whole:', 15, { 'in one process, by its declaration': 6 }],
  ] as const) {
    const report = await check(port, url)
    assert.ok(report.ok)
    assert.is(report.holds, holds, `${port} ${url}`)
    assert.is(
      report.unsupported,
      Object.values(reasons).reduce((sum, count) => sum + count, 0),
      JSON.stringify(report.checks.filter(one => one.result === 'unsupported')),
    )
    for (const [reason, count] of Object.entries(reasons))
      assert.is(
        report.checks.filter(one => one.detail.includes(reason)).length,
        count,
        `${port} ${url}: ${reason}`,
      )
  }
})

test("a mistake in what it rides on is told by the option's name", async () => {
  const fails = async (sentence: RegExp, ...asked: Parameters<typeof check>) =>
    assert.match(
      await check(...asked).then(
        () => 'it was checked',
        (error: Error) => error.message,
      ),
      sentence,
    )
  await fails(
    /^on: limits memory: does not ride on storage; it rides on no other port/,
    'limits',
    'memory:',
    { on: 'storage=memory:' },
  )
  await fails(/^on: "sqlite:" is not written as <port>=<url>/, 'queue', 'storage:', {
    on: 'sqlite:',
  })
  await fails(/^on: there is no adapter "couch:"/, 'queue', 'storage:', { on: 'storage=couch:' })
  await fails(/^on: names one place for all checks; write \{n\}/, 'queue', 'storage:', {
    on: `storage=sqlite:${home}/one.db`,
  })
  await fails(
    new RegExp(
      '^port: .*there are storage, eventlog, blobs, search, billing, queue, limits, mail, ' +
        'traces, clock, models',
    ),
    'http',
    'restify:',
  )
})

test.after(() => rmSync(home, { recursive: true, force: true }))
test.run()
