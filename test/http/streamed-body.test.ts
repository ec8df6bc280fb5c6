// A body of which one field is read as a stream: it comes through wherever its parts are cut.
import { Type } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { filled } from '../../contracts/contract.ts'
import { NewArtifact } from '../../contracts/files.ts'
import { base64Decoder } from '../../kernel/request-body/base64.ts'
import { streamBody } from '../../kernel/request-body/streamed.ts'
import { bytesOf, cutAt, partsOf, read, shape, validator } from './streamed.ts'

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

test.run()
