// A body of which one field is read as a stream is refused for the same reasons as any other.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { streamBody } from '../../kernel/request-body/streamed.ts'
import { around, bytesOf, cutAt, partsOf, refusal, shape } from './streamed.ts'

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

test.run()
