// Texts that were made to hold a server up: sent as messages, plans, titles, notes, searches and
// files. Each is answered, and the process goes on meanwhile.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

/** A bound for a machine under load; a process that is held up stays so for seconds. */
const heldUpMsMax = 1000
/** Characters of a message that is still taken. */
const long = 120_000
const fill = (part: string, length = long) =>
  part.repeat(Math.ceil(length / part.length)).slice(0, length)
const nested = (open: string, close: string, depth: number) =>
  open.repeat(depth) + close.repeat(depth)

const hostile: Readonly<Record<string, string>> = {
  // Normalising.
  'combining marks': fill('\u0301'),
  'marks on letters': fill('e\u0301'),
  'marks out of order': fill('\u0315\u0300\u05ae\u0062'),
  'marks that fall apart': fill('\u0344\u0f73\u0f75'),
  'one letter with all marks': `a${fill('\u0316\u0301')}`,
  'letters that grow': fill('\ufdfa'),
  ligatures: fill('ﬃ'),
  'full width': fill('ＡＢＣ１２３'),
  'capital sharp s': fill('ẞİ'),
  'dotted i': fill('İ'),
  'final sigma': fill('Σ'),
  'hangul parts': fill('\u1100\u1161\u11a8'),
  kelvin: fill('KÅΩ'),
  musical: fill('\u{1d15f}\u{1d160}'),
  // Writing systems.
  'right to left': fill('שלום عالم '),
  overrides: fill('\u202e\u202d\u2066abc\u2069'),
  isolates: fill('\u2066'),
  'Arabic joined': fill('ﷺ'),
  Thai: fill('ก็้ำ'),
  Han: fill('漢字'),
  Khmer: fill('ខ្មែរ'),
  Indic: fill('क्षि'),
  mixed: fill('aא漢кथ'),
  // Emoji and joiners.
  families: fill('👨‍👩‍👧‍👦'),
  joiners: fill('\u200d'),
  'joiner chains': fill('👩\u200d'),
  'skin tones': fill('👍🏿'),
  flags: fill('🇩🇿'),
  keycaps: fill('1️⃣'),
  tags: fill('\u{e0061}'),
  selectors: fill('\ufe0f'),
  'not shown': fill('\u200b\u2060\ufeff'),
  // Broken.
  'high surrogates': fill('\ud800'),
  'low surrogates': fill('\udc00'),
  'swapped pairs': fill('\udc00\ud800'),
  NULs: fill('a\u0000'),
  controls: fill('\u0001\u001b[31m\u0007'),
  'no characters': fill('\uffff\ufffe'),
  replacement: fill('\ufffd'),
  // One and the same.
  'one letter': fill('a'),
  'one digit': fill('9'),
  'one quote': fill("'"),
  apostrophes: fill("a'"),
  'number signs': fill('c#'),
  pluses: fill('c++'),
  underscores: fill('_'),
  spaces: `${fill(' ')}x`,
  newlines: `${fill('\n')}x`,
  'tabs and newlines': `x${fill('\t\n\r')}x`,
  'line separators': fill('\u2028\u2029'),
  dots: fill('.'),
  // Lists, markup and numbers.
  'numbered lines': fill('1. x\n'),
  'numbers without titles': fill('1.\n'),
  'numbers and newlines': `${fill('\n1')}`,
  'bold numbers': fill('**1.** '),
  'open bold': fill('**'),
  quotes: fill('> '),
  'deep quotes': fill('>'),
  links: fill('[a]('),
  images: fill('!['),
  brackets: nested('[', ']', long / 2),
  directives: fill('[[a='),
  'directives that end': fill('[[a=]]'),
  backticks: fill('`'),
  tables: fill('|-|\n'),
  headings: fill('#'),
  'tags that open': fill('<a href="'),
  'tags that nest': nested('<b>', '</b>', 15_000),
  entities: fill('&amp;'),
  braces: nested('{"a":', '}', 15_000),
  JSON: `${'['.repeat(50_000)}`,
  'digits and dots': fill('1.1'),
  exponents: fill('1e9'),
  dates: fill('2026-11-22T'),
  addresses: fill('a@a.'),
  'links without end': fill('http://a'),
  words: Array.from({ length: 20_000 }, (_, at) => `w${at}`).join(' '),
  'huge words': `${fill('Donaudampfschifffahrt')} ${fill('x', 60_000)}`,
  template: fill('${a}'),
  'regular expression': fill('(a+)+'),
  paths: fill('../'),
}

const server = await startServer({
  env: {
    MODELS_URL: 'scripted:?tokens=3',
    RUNS_SEARCH_WAIT_MS: '0',
    RUNS_RETENTION_MS: '200',
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    LIMITS_API_PER_SECOND: '100000',
  },
})
const { token } = await server.account(1_000_000)
const call = (method: string, path: string, body?: object) =>
  server.call(method, path, { token, ...(body ? { body } : {}) })
/** Half a pair is written as JSON writes it: in UTF-8 it cannot be. */
const ascii = (value: unknown) =>
  JSON.stringify(value).replace(
    /[\u0080-\uffff]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
const answered = (status: number, what: string) =>
  assert.ok(status >= 200 && status < 500, `${what}: ${status}`)
const chat = async (
  name: string,
  message: string,
  more: object = {},
): Promise<string | undefined> => {
  const { status, body } = await server.call('POST', '/chat', {
    token,
    raw: ascii({ message, ...more }),
  })
  answered(status, name)
  const { run_id: id, session_id: session } = body as { run_id?: string; session_id?: string }
  if (id === undefined) return undefined
  const last = (await readEvents(await server.stream(token, id))).at(-1)
  assert.ok(last?.event === 'done' || last?.event === 'error', `${name} ends`)
  return session
}
/** How long the process stood still at most while this was done. */
async function held(what: string, act: () => Promise<void>): Promise<void> {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  await act()
  delay.disable()
  assert.ok(
    delay.max / 1e6 < heldUpMsMax,
    `${what} held the process up for ${Math.round(delay.max / 1e6)} ms`,
  )
}

test('there are many, and each is long', () =>
  assert.ok(
    Object.keys(hostile).length >= 80 &&
      Object.values(hostile).every(({ length }) => length >= 50_000),
  ))

test('as messages, and as titles of their conversations', async () => {
  for (const [name, text] of Object.entries(hostile))
    await held(name, async () => {
      const session = await chat(name, text)
      if (session)
        answered(
          (
            await server.call('PATCH', `/sessions/${session}`, {
              token,
              raw: ascii({ title: text.slice(0, 200) }),
            })
          ).status,
          name,
        )
    })
})
test('as plans', async () => {
  for (const [name, text] of Object.entries(hostile).filter(([kind]) =>
    /number|newline|bold|spaces|dots|digits/.test(kind),
  ))
    await held(
      name,
      async () => void (await chat(name, `[[text=${text.slice(0, 3000)}]]`, { plan: true })),
    )
})
test('as notes', async () => {
  for (const [name, text] of Object.entries(hostile))
    await held(name, async () => {
      const { status, body } = await server.call('POST', '/chat', {
        token,
        raw: ascii({
          message:
            '[[tool=note ' +
            `${ascii({ title: text.slice(0, 150), text: text.slice(0, 20_000) })}]]`,
        }),
      })
      answered(status, name)
      await readEvents(await server.stream(token, (body as { run_id: string }).run_id))
    })
})
test('as files', async () => {
  for (const [name, text] of Object.entries(hostile))
    await held(name, async () => {
      const { status, body } = await call('POST', '/uploads', {
        filename: 'a.txt',
        mime: 'text/plain',
        content_base64: Buffer.from(text).toString('base64'),
      })
      answered(status, name)
      if (name.length % 8 === 0)
        await chat(name, 'read it', { attachments: [(body as { upload_id: string }).upload_id] })
    })
})
test('as what is searched for, among all of them', async () => {
  for (const [name, text] of Object.entries(hostile))
    await held(name, async () => {
      for (const q of [text.slice(0, 200).toWellFormed(), text.slice(-20).toWellFormed()])
        answered((await call('GET', `/sessions/search?q=${encodeURIComponent(q)}`)).status, name)
    })
  const found = async (q: string) =>
    ((await call('GET', `/sessions/search?q=${q}`)).body as { items: unknown[] }).items.length
  await held('all of them', async () => {
    while ((await found('w19999')) === 0) await new Promise(resolve => setTimeout(resolve, 20))
  })
})

test.after(() => server.stop())
test.run()
