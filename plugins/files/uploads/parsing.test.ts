// From bytes to text: which parser, for how long, what is kept, and what becomes of it after a
// crash.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, fault, into } from '#kernel'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { startFiles, until } from '../../../test/support/files-kit.ts'
import { Parsers, type Parser } from '../api.ts'
import { Uploads } from '../collections.ts'
import { cut } from './text.ts'

let held: (() => void) | undefined
let heard = 0
const parser = (kind: string, parse: Parser['parse']): Parser => ({
  name: kind,
  accepts: mime => mime === `application/x-${kind}`,
  parse,
})
const parsers = [
  parser('pages', async bytes => ({
    text:
      'pages of ' +
      `${(await Array.fromAsync(bytes)).reduce((sum, { length }) => sum + length, 0)} bytes`,
  })),
  parser('broken', async () => {
    throw new TypeError('secret inner words')
  }),
  parser('refused', async () => {
    throw fault('FORBIDDEN', { why: 'the file is locked by a password' })
  }),
  parser('endless', () => new Promise(() => undefined)),
  parser('deaf', async (_bytes, { signal }) => {
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => {
        heard++
        reject(new Error('heard'))
      }),
    )
    return { text: '' }
  }),
  parser('chatty', async () => ({ text: '😀'.repeat(1_100_000) })),
  parser('held', async () => {
    await new Promise<void>(resolve => {
      held = resolve
    })
    return { text: 'let go' }
  }),
  {
    name: 'markdown',
    accepts: (mime: string) => mime === 'text/markdown',
    parse: async () => ({ text: 'by the markdown parser' }),
  },
]
const plugin = definePlugin({
  name: 'more-parsers',
  version: '1.0.0',
  kernel: '^1.0.0',
  contributes: parsers.map(each => into(Parsers, () => each)),
})
const server = await startFiles({ plugins: [plugin], env: { FILES_PARSE_MS: '200' } })
const ann = await server.account()
const storage = server.engine<StorageEngine>('storage')
const queue = server.engine<Queue>('queue')
const idOf = ({ body }: { body: unknown }) => (body as { upload_id: string }).upload_id
const state = async (content: string | Uint8Array, mime: string) => {
  const { status, detail, text } = await server.read(
    ann,
    await server.upload(ann, content, { mime }),
  )
  return { status, detail, text }
}
const ready = (text: string) => ({ status: 'ready', detail: null, text })

test('text is text by its type or by its content', async () => {
  for (const mime of [
    'text/plain',
    'TEXT/CSV',
    'application/json',
    'application/xml',
    'image/svg+xml',
    'application/vnd.api+json',
    'application/octet-stream',
    'application/x-unheard-of',
  ])
    assert.equal(await state('ü,1', mime), ready('ü,1'), mime)
  assert.equal(await state('', 'text/plain'), ready(''))
  assert.equal(await state('\ufeffmarked', 'text/plain'), ready('marked'))
  assert.equal(await state(Buffer.from('\ufeffmärked', 'utf16le'), 'text/plain'), ready('märked'))
  assert.equal(
    await state(Buffer.from('f\xfcr', 'latin1'), 'text/plain; charset=windows-1252'),
    ready('für'),
  )
  assert.equal(
    await state(Buffer.from('f\xfcr', 'latin1'), 'text/plain; charset="ISO-8859-1"'),
    ready('für'),
  )
})

test('what is no text is kept and not read', async () => {
  for (const [content, mime] of [
    ['%PDF-1.4', 'application/pdf'],
    ['looks like text', 'image/png'],
    ['PK', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    [Buffer.from([0xff, 0xd8]), 'application/octet-stream'],
    ['a\u0000b', 'application/octet-stream'],
  ] as const) {
    const { status, detail, text } = await state(content, mime)
    assert.is(status, 'unsupported', mime)
    assert.match(String(detail), /reads this kind of file/)
    assert.is(text, null)
  }
})

test('a text that cannot be read says what would help', async () => {
  const latin = await state(Buffer.from('f\xfcr', 'latin1'), 'text/csv')
  assert.is(latin.status, 'failed')
  assert.match(String(latin.detail), /charset=windows-1252/)
  assert.match(String((await state('x', 'text/plain; charset=klingon')).detail), /not known/)
})

test('a contributed parser precedes the built-in one, and its failures are its own', async () => {
  assert.equal(await state('12345', 'application/x-pages'), ready('pages of 5 bytes'))
  assert.equal(await state('# x', 'text/markdown; charset=utf-8'), ready('by the markdown parser'))
  assert.equal(await state('x', 'application/x-broken'), {
    status: 'failed',
    detail: 'It could not be read.',
    text: null,
  })
  assert.equal(await state('x', 'application/x-refused'), {
    status: 'failed',
    detail: 'Not allowed: the file is locked by a password.',
    text: null,
  })
})

test('a parser that does not end is not waited for', async () => {
  for (const kind of ['endless', 'deaf'])
    assert.equal(await state('x', `application/x-${kind}`), {
      status: 'failed',
      detail: 'Reading it took longer than 0.2 s.',
      text: null,
    })
  assert.is(heard, 1, 'it is told to stop')
})

test('a long text is kept beside its document and cut only between characters', async () => {
  const long = `${'a'.repeat(99_999)}😀${'ß'.repeat(20_000)}`
  const uploaded = await server.upload(ann, long)
  const shown = await server.read(ann, uploaded)
  assert.is(shown['text'], 'a'.repeat(99_999))
  assert.is(shown['text_truncated'], true)
  const [attached] = await server
    .uploads()
    .attach({ orgId: ann.org_id, userId: ann.user_id }, [idOf(uploaded)], { textMax: 1_000_000 })
  assert.is(attached!.text, long)
  assert.is(attached!.truncated, false)
  const document = await storage.get(Uploads, idOf(uploaded))
  assert.is(document!.text, undefined)
  assert.is(document!.textHash, document!.hash, 'the text of a text is the same content')
})

test('of a text beyond all bounds the beginning is kept, and said so', async () => {
  const huge = await server.read(
    ann,
    await server.upload(ann, 'x', { mime: 'application/x-chatty' }),
  )
  assert.is(huge['status'], 'ready')
  assert.match(String(huge['detail']), /the first 2000000 characters/)
  assert.is(huge['text_truncated'], true)
  assert.is(String(huge['text']), '😀'.repeat(50_000))
})

test('a large file is parsed by a job after its upload was answered', async () => {
  const content = 'line\n'.repeat(300_000)
  const uploaded = await server.upload(ann, content)
  const [attached] = await server
    .uploads()
    .attach({ orgId: ann.org_id, userId: ann.user_id }, [idOf(uploaded)], { textMax: 2_000_000 })
  assert.is(attached!.status, 'ready')
  assert.is(attached!.text, content)
  assert.is((await storage.get(Uploads, idOf(uploaded)))!.parsingSince, undefined)
})

/** As a crash between the two steps would leave it: stored, and no job. */
const lostJob = async (change: object = {}) => {
  const id = idOf(await server.upload(ann, 'found again'))
  await storage.update(Uploads, id, {
    set: { status: 'parsing', parsingSince: Date.now() - 3_600_000, ...change },
    unset: ['text', 'textChars'],
  })
  return id
}
const ended = async (id: string) => {
  await until(async () => (await storage.get(Uploads, id))?.status !== 'parsing')
  return (await storage.get(Uploads, id))!
}

test('a job that got lost is found by the sweep, and doing it twice changes nothing', async () => {
  const id = await lostJob()
  await queue.enqueue('files.sweep', null)
  assert.is((await ended(id)).text, 'found again')
  const job = await queue.enqueue('files.parse', { orgId: ann.org_id, id })
  await until(async () => (await queue.state(job)) === 'done')
  assert.is((await ended(id)).tries, 1)
})

test('a file on which the process broke off time after time is given up', async () => {
  const id = await lostJob({ tries: 5 })
  await queue.enqueue('files.sweep', null)
  const { status, detail } = await ended(id)
  assert.is(status, 'failed')
  assert.match(String(detail), /each try broke off/)
})

test('attached texts come in the order asked for; a foreign id is named by its place', async () => {
  const scope = { orgId: ann.org_id, userId: ann.user_id }
  const ids = [
    idOf(await server.upload(ann, 'one', { filename: '1.txt' })),
    idOf(await server.upload(ann, '%PDF', { filename: '2.pdf', mime: 'application/pdf' })),
  ]
  assert.equal(await server.uploads().attach(scope, ids.toReversed()), [
    { id: ids[1], name: '2.pdf', status: 'unsupported', text: '', truncated: false, chars: 0 },
    { id: ids[0], name: '1.txt', status: 'ready', text: 'one', truncated: false, chars: 3 },
  ])
  assert.equal((await server.uploads().attach(scope, [ids[0]!], { textMax: 2 }))[0], {
    id: ids[0],
    name: '1.txt',
    status: 'ready',
    text: 'on',
    truncated: true,
    chars: 3,
  })
  const bob = await server.account()
  for (const [who, id] of [
    [scope, crypto.randomUUID()],
    [{ orgId: bob.org_id, userId: bob.user_id }, ids[0]!],
    [{ orgId: ann.org_id, userId: bob.user_id }, ids[0]!],
  ] as const) {
    const known = who === scope ? [ids[0]!] : []
    await server
      .uploads()
      .attach(who, [...known, id])
      .then(
        () => assert.unreachable(),
        (error: Error) =>
          assert.is(error.message, `There is no such upload (attachments.${known.length}).`),
      )
  }
})

test('one that is being parsed is waited for', async () => {
  const uploading = server.upload(ann, 'x', { mime: 'application/x-held' })
  await until(() => held !== undefined)
  held!()
  assert.is((await server.read(ann, await uploading))['text'], 'let go')
  const id = await lostJob({ mime: 'application/x-pages' })
  const attaching = server.uploads().attach({ orgId: ann.org_id, userId: ann.user_id }, [id])
  await queue.enqueue('files.parse', { orgId: ann.org_id, id })
  assert.is((await attaching)[0]!.text, 'pages of 11 bytes')
})

test('a cut never halves a character', () => {
  assert.is(cut('a😀b', 2), 'a')
  assert.is(cut('a😀b', 3), 'a😀')
  assert.is(cut('ab', 2), 'ab')
})

test.after(() => server.stop())
test.run()
