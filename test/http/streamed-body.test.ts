// A body of which one field is read as a stream: it is refused for the same reasons as any other,
// wherever its parts are cut.
import { PassThrough } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { Type } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { streamBody as streamRequest } from '../../adapters/http/lib/stream-body.ts'
import { filled } from '../../contracts/contract.ts'
import { NewArtifact, NewUpload } from '../../contracts/files.ts'
import { isFault } from '../../contracts/faults.ts'
import { base64Decoder } from '../../kernel/request-body/base64.ts'
import { streamBody } from '../../kernel/request-body/streamed.ts'
import { createValidator } from '../../kernel/validation/validate.ts'

const validator = createValidator()
const shape = {
  field: 'content_base64',
  encoding: 'base64' as const,
  check: validator.check('body', NewUpload),
  checkEarly: validator.check('body', { ...NewUpload, required: [] }),
}
const bytesOf = (body: string | Uint8Array) =>
  typeof body === 'string' ? new TextEncoder().encode(body) : body

/** Counts how many parts were asked for. */
function partsOf(parts: readonly Uint8Array[]) {
  let taken = 0
  return {
    taken: () => taken,
    source: (async function* () {
      for (const part of parts) {
        taken++
        yield part
      }
    })(),
  }
}
async function read(parts: readonly Uint8Array[]) {
  const body = streamBody(partsOf(parts).source, shape)
  const content: Uint8Array[] = []
  for await (const part of body.content) content.push(part)
  return { content: Buffer.concat(content).toString('latin1'), fields: body.fields() }
}
const refusal = (parts: readonly Uint8Array[]) =>
  read(parts).then(
    () => 'accepted',
    (error: unknown) => (isFault(error) ? `${error.code} ${error.message}` : String(error)),
  )
const cutAt = (bytes: Uint8Array, at: number) => [bytes.subarray(0, at), bytes.subarray(at)]

const content = '\u0000\u0001\u00fe\u00ff any bytes, 19'
const members = [
  '"filename":"n\\u00f6tes \\ud83d\\ude00 ü.txt"',
  `"content_base64":"${btoa(content).replaceAll('/', '\\/').replace('A', '\\u0041')}"`,
  '"mime": "text/plain"',
  '"session_id" : "00000000-0000-7000-8000-00000000dead"',
]
const fields = {
  filename: 'nötes 😀 ü.txt',
  mime: 'text/plain',
  session_id: '00000000-0000-7000-8000-00000000dead',
}
const orders = (items: readonly string[]): string[][] =>
  items.length < 2
    ? [[...items]]
    : items.flatMap((item, i) => orders(items.toSpliced(i, 1)).map(rest => [item, ...rest]))

test('the fields may come in any order', async () => {
  const all = orders(members)
  assert.is(all.length, 24)
  for (const order of all)
    assert.equal(await read([bytesOf(`{${order.join(',')}}`)]), { content, fields }, order.join())
})

test('a body may be cut anywhere, even within a character, escape or Base64 group', async () => {
  for (const order of [members, members.toReversed()]) {
    const body = bytesOf(` {${order.join(' ,\n')}} \n`)
    for (let at = 0; at <= body.length; at++)
      assert.equal(await read(cutAt(body, at)), { content, fields }, `cut at ${at}`)
    assert.equal(
      await read([...body].map(byte => Uint8Array.of(byte))),
      { content, fields },
      'byte by byte',
    )
  }
})

test('every length of content comes through', async () => {
  for (let length = 0; length < 10; length++) {
    const text = 'ÿ'.repeat(length)
    assert.is(
      (await read([bytesOf(`{"filename":"a","mime":"a/b","content_base64":"${btoa(text)}"}`)]))
        .content,
      text,
    )
  }
})

const around = (base64: string) =>
  bytesOf(`{"filename":"a","content_base64":"${base64}","mime":"a/b"}`)
test('what is not Base64 is refused by name and place, for any cut', async () => {
  const wrong: [string, RegExp][] = [
    ['!AAA', /at character 1\b/],
    ['AA AAAAA', /at character 3\b/],
    ['AAAAAAA_', /at character 8\b/],
    ['AAAAAAA-', /at character 8\b/],
    ['AAAA\\nAAAA', /at character 5\b/],
    ['AAAA=AAA', /at character 5\b/],
    ['AA=A', /at character 3\b/],
    ['AAA=AAAA', /goes on after its padding, at character 5\b|at character 4\b/],
    ['====', /at character 1\b/],
    ['A===', /at character 2\b/],
    ['AA==AA==', /after its padding|at character 3\b/],
    ['A', /ends within a group/],
    ['AA', /ends within a group/],
    ['AAA', /ends within a group/],
    ['AAAAAA=', /ends within a group/],
    ['AAAAA', /ends within a group of four, at character 5\b/],
    ['AB==', /bits are left over/],
    ['AAB=', /bits are left over/],
    ['AAAAAAB=', /bits are left over in its last group, at character 5\b/],
    ['ÄAAA', /at character 1\b/],
    ['data:text/plain;base64,AAAA', /at character 5\b/],
  ]
  for (const [base64, place] of wrong) {
    const body = around(base64)
    for (let at = 0; at <= body.length; at++) {
      const told = await refusal(cutAt(body, at))
      assert.match(told, /^INVALID_FIELD content_base64: is not Base64/, `${base64} cut at ${at}`)
      assert.match(told, place, `${base64} cut at ${at}`)
    }
  }
})

test('what is not JSON or UTF-8, too deep or empty is refused as in any body', async () => {
  const good = Buffer.from(around('AAAA'))
  for (const [body, expected] of [
    [good.subarray(0, -1), /^MALFORMED_JSON .*ends too early/],
    ['{', /^MALFORMED_JSON .*ends too early/],
    [`${good}}`, /^MALFORMED_JSON/],
    [`${good} x`, /^MALFORMED_JSON/],
    [`${good}{}`, /^MALFORMED_JSON/],
    ['nonsense', /^MALFORMED_JSON/],
    ['{"a":"\n"}        ', /^MALFORMED_JSON/],
    ["{'a':1}", /^MALFORMED_JSON/],
    ['{"a":1,}', /^MALFORMED_JSON/],
    ['{"a":01}', /^MALFORMED_JSON/],
    ['[1,]', /^MALFORMED_JSON/],
    [Buffer.concat([good, Buffer.from([0xff])]), /^MALFORMED_TEXT body/],
    [Buffer.from('{"filename":"\xff"}', 'latin1'), /^MALFORMED_TEXT body/],
    [Buffer.concat([good, Buffer.from([0xe2, 0x82])]), /^MALFORMED_TEXT body/],
    ['[[[['.repeat(20), /^TOO_DEEP/],
    [`{"a":${'[{"b":'.repeat(40)}`, /^TOO_DEEP/],
    ['', /^INVALID_FIELD body: is required/],
  ] as const)
    assert.match(await refusal([bytesOf(body as string)]), expected, String(body).slice(0, 60))
  const nested = (levels: number) => [
    bytesOf(`{"a":${'['.repeat(levels - 1)}1${']'.repeat(levels - 1)}}`),
  ]
  assert.match(await refusal(nested(64)), /^INVALID_FIELD/)
  assert.match(await refusal(nested(65)), /^TOO_DEEP/)
  assert.is(await refusal([]), 'INVALID_FIELD body: is required.')
})

test('unknown, missing, mistyped and repeated fields are refused by name', async () => {
  for (const [body, expected] of [
    ['{"filename":"a","mime":"a/b","content_base64":"","more":1}', 'more: is not a known field'],
    ['{"filename":"a","mime":"a/b"}', 'content_base64: is required'],
    ['{"mime":"a/b","content_base64":""}', 'filename: is required'],
    ['{"filename":"a","mime":"a/b","content_base64":["AAAA"]}', 'content_base64: must be string'],
    ['{"filename":"a","mime":"a/b","content_base64":null}', 'content_base64: must be string'],
    ['{"filename":1,"mime":"a/b","content_base64":""}', 'filename: must be string'],
    [
      '{"filename":"a","filename":"b","mime":"a/b","content_base64":""}',
      'filename: is given twice',
    ],
    [
      '{"content_base64":"AAAA","filename":"a","mime":"a/b","content_base64":"AAAA"}',
      'content_base64: is given twice',
    ],
    [
      '{"content_base64":5,"filename":"a","mime":"a/b","content_base64":"AAAA"}',
      'content_base64: is given twice',
    ],
    [
      '{"__proto__":{"filename":"a"},"mime":"a/b","content_base64":""}',
      '__proto__: is not a known field',
    ],
    ['[{"content_base64":"AAAA"}]', 'body: must be object'],
    ['"AAAA"', 'body: must be object'],
    ['null', 'body: must be object'],
    ['-1.5e3', 'body: must be object'],
    [
      '{"x":{"content_base64":"!"},"filename":"a","mime":"a/b","content_base64":""}',
      'x: is not a known field',
    ],
  ] as const)
    assert.match(await refusal([bytesOf(body)]), expected, body)
})

test('fields before the content are judged before it is read, later ones at its end', async () => {
  const chunks = Array.from({ length: 50 }, () => bytesOf('AAAA'))
  for (const [start, expected] of [
    ['{"filename":"a/b","content_base64":"', /filename/],
    ['{"surprise":1,"content_base64":"', /surprise/],
    ['{"mime":"none","content_base64":"', /mime/],
  ] as const) {
    const { source, taken } = partsOf([bytesOf(start), ...chunks, bytesOf('"}')])
    await streamBody(source, shape)
      .content[Symbol.asyncIterator]()
      .next()
      .then(
        () => assert.unreachable(),
        (error: Error) => assert.match(error.message, expected),
      )
    assert.is(taken(), 1)
  }
  const late = streamBody(
    partsOf([
      bytesOf('{"content_base64":"'),
      ...chunks,
      bytesOf('","filename":"a/b","mime":"a/b"}'),
    ]).source,
    shape,
  )
  let bytes = 0
  const ended = (async () => {
    for await (const part of late.content) bytes += part.length
  })()
  await ended.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /filename/),
  )
  assert.is(bytes, 150)
  assert.throws(() => late.fields(), /known when its content has ended/)
})

test('what stands behind the content is not taken for given by its default', async () => {
  const schema = Type.Object(
    { content: Type.String(), colour: filled(Type.String({ default: 'red' })) },
    { additionalProperties: false },
  )
  const coloured = {
    field: 'content',
    encoding: 'base64' as const,
    check: validator.check('body', schema),
    checkEarly: validator.check('body', { ...schema, required: [] }),
  }
  for (const [rest, colour] of [
    ['', 'red'],
    [',"colour":"blue"', 'blue'],
  ] as const) {
    const body = streamBody(partsOf([bytesOf(`{"content":"AAAA"${rest}}`)]).source, coloured)
    assert.is((await Array.fromAsync(body.content)).length, 1)
    assert.equal(body.fields(), { colour })
  }
})

test('only the content may be long', async () => {
  const long = 'x'.repeat(300_000)
  const parts = ['{"filename":"', long, long, long, long, '"}'].map(bytesOf)
  const { source, taken } = partsOf(parts)
  await streamBody(source, shape)
    .content[Symbol.asyncIterator]()
    .next()
    .then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, 'filename: is too long'),
    )
  assert.is(taken(), 5)
  assert.match(
    await refusal(['{"', long, long, long, long, '":1}'].map(bytesOf)),
    /^INVALID_FIELD body: is too long/,
  )
  assert.match(
    await refusal(
      ['{"mime":', ...Array.from({ length: 6 }, () => '1'.repeat(200_000)), '}'].map(bytesOf),
    ),
    /^INVALID_FIELD mime: is too long/,
  )
  assert.match(
    await refusal(
      ['{"mime":[', ...Array.from({ length: 6 }, () => '1,'.repeat(200_000)), '1]}'].map(bytesOf),
    ),
    /^INVALID_FIELD mime: is too long/,
  )
})

test('the reader sets the pace', async () => {
  const { source, taken } = partsOf([
    bytesOf('{"content_base64":"AAAA'),
    ...Array.from({ length: 20 }, () => bytesOf('AAAA')),
    bytesOf('","filename":"a","mime":"a/b"}'),
  ])
  const reader = streamBody(source, shape).content[Symbol.asyncIterator]()
  for (let i = 1; i <= 5; i++) {
    await reader.next()
    assert.is(taken(), i)
  }
})

test('the decoder keeps no more than the rest of a group', () => {
  const decoder = base64Decoder(why => new Error(why))
  assert.equal(
    ['QUJ', 'D', 'QU', 'I='].map(text => Buffer.from(decoder.decode(text)).toString()),
    ['', 'ABC', '', 'AB'],
  )
  decoder.end()
})

test('a text field becomes its bytes for any cut; half a character is refused', async () => {
  const textual = {
    field: 'content',
    encoding: 'text' as const,
    check: validator.check('body', NewArtifact),
    checkEarly: validator.check('body', { ...NewArtifact, required: [] }),
  }
  const heard = async (parts: readonly Uint8Array[]) => {
    const body = streamBody(partsOf(parts).source, textual)
    return [Buffer.concat(await Array.fromAsync(body.content)).toString('utf8'), body.fields()]
  }
  const written = 'ü€😀\n"x"'
  const metadata = { filename: 'a', mime: 'a/b' }
  for (const text of [
    JSON.stringify({ ...metadata, content: written }),
    `{"content":"ü€\\ud83d\\ude00\\n\\"x\\"","filename":"a","mime":"a/b"}`,
  ]) {
    const bytes = bytesOf(text)
    for (let at = 0; at <= bytes.length; at++)
      assert.equal(await heard(cutAt(bytes, at)), [written, metadata], String(at))
  }
  assert.equal(await heard([bytesOf('{"content":"","filename":"a","mime":"a/b"}')]), ['', metadata])
  for (const half of ['\\ud83d', '\\ude00', 'x\\ud83dx'])
    await heard([bytesOf(`{"content":"${half}","filename":"a","mime":"a/b"}`)]).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /content: holds half a character/),
    )
  await heard([bytesOf('{"content":7,"filename":"a","mime":"a/b"}')]).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /content: must be string/),
  )
})

/** As node:http's, with a head of its own. */
const requestOf = (headers: Record<string, string>) =>
  Object.assign(new PassThrough(), { headers }) as unknown as IncomingMessage & PassThrough
const bounds = { bytesMax: 10, bytesPerSecondMin: 1, enter: () => () => undefined }
const lengthOf = async (stream: AsyncIterable<Uint8Array>) =>
  (await Array.fromAsync(stream)).reduce((sum, { length }) => sum + length, 0)

test('a request is bounded by what its head says, and by what comes', async () => {
  assert.throws(
    () => streamRequest(requestOf({ 'content-length': '11' }), bounds),
    /larger than 10 bytes/,
  )
  assert.throws(
    () => streamRequest(requestOf({ 'content-length': '1', 'content-encoding': 'gzip' }), bounds),
    /Content-Encoding/,
  )
  assert.is(await lengthOf(streamRequest(requestOf({}), bounds)), 0)
  const chunked = requestOf({ 'transfer-encoding': 'chunked' })
  chunked.write('0123456789')
  const seen = lengthOf(streamRequest(chunked, bounds))
  chunked.write('x')
  await seen.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /larger than 10 bytes/),
  )
  assert.not.ok(chunked.destroyed, 'the refusal can still be sent')
})

test('a request that breaks off, and one that comes to a halt, are told apart', async () => {
  const broken = requestOf({ 'content-length': '5' })
  const reading = lengthOf(streamRequest(broken, bounds))
  broken.write('abc')
  broken.destroy(new Error('aborted'))
  await reading.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /the body ended early/),
  )
  const silent = requestOf({ 'content-length': '5' })
  const waiting = lengthOf(streamRequest(silent, { ...bounds, graceMs: 10 }))
  silent.write('a')
  await waiting.then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /the body came too slowly/),
  )
})

test.run()
