// Bodies whose frame lies, and bodies that are no JSON object.
import { close, end, framing, get, healthz, login, post, row } from './row.ts'

export const frames = [
  ...['-1', '1e3', '0x10', '+2', '99999999999999999999', '2, 2', 'x', ' '].map(length =>
    row(`Content-Length: ${length}`, framing(`Content-Length: ${length}`) + '{}', [400, 413]),
  ),
  row('two Content-Lengths', framing('Content-Length: 2', 'Content-Length: 3') + '{}', [400]),
  row(
    'Content-Length and chunks',
    framing('Content-Length: 2', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
    [400],
  ),
  ...['gzip', 'chunked, gzip', 'chunked, chunked', 'identity', 'xchunked', 'chunked\u000b'].map(
    coding =>
      row(
        `Transfer-Encoding: ${coding}`,
        framing(`Transfer-Encoding: ${coding}`) + '0\r\n\r\n',
        [400, 415, 501],
      ),
  ),
  ...[
    'zz\r\n',
    '-1\r\n',
    '5\r\nab',
    'ffffffffffffffffff\r\n',
    '2\r\n{}x\r\n',
    ' 2\r\n',
    '2 \r\n{}\r\n',
    '2;=\r\n',
  ].map(chunk =>
    row(
      `the chunk ${JSON.stringify(chunk)}`,
      framing('Transfer-Encoding: chunked') + chunk + '\r\n',
      [400],
      chunk === '5\r\nab' ? 'hang up' : undefined,
    ),
  ),
  row(
    'a chunk with a long extension',
    framing('Transfer-Encoding: chunked') + `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    [413, 400],
  ),
  row(
    'a chunk a byte',
    framing('Transfer-Encoding: chunked') + '1\r\n{\r\n'.repeat(2000) + '0\r\n\r\n',
    [400],
  ),
  row(
    'trailers behind the chunks',
    framing('Transfer-Encoding: chunked') + `2\r\n{}\r\n0\r\n${'x: y\r\n'.repeat(5000)}\r\n`,
    [400, 431],
  ),
  row('a longer body than was said', framing('Content-Length: 2') + '{}{}', [400]),
  row(
    'a shorter body than was said',
    framing('Content-Length: 20') + '{}',
    ['close', 400],
    'hang up',
  ),
  row('a body with GET', get(healthz, 'Content-Length: 4') + 'body', [200]),
  row('a body of 400 MB that is announced', framing('Content-Length: 400000000'), [413]),
  row('a body of 9,000 bytes to sign in', post(login, `{"email":"${'a'.repeat(9000)}"}`), [413]),
]

const deep = (open: string, shut: string, levels: number) =>
  open.repeat(levels) + shut.repeat(levels)
export const bodies = [
  ...[
    '',
    '{',
    '}',
    'null',
    '[]',
    '1',
    '"x"',
    '{"a":}',
    '\ufeff{}',
    '{"email":null,"password":null}',
    '{"__proto__":{"email":1}}',
    '{"constructor":{"prototype":{}}}',
    '{"email":1e999,"password":-0}',
    '{"email":{"toString":1},"password":[]}',
    '{"a":1,"a":2}',
    'NaN',
    '{"email":"\\ud800","password":"x"}',
    "{'a':1}",
    '{"a":"\\u0000"}',
    `${' '.repeat(8000)}x`,
  ].map(body => row(`the body ${body.slice(0, 30)}`, post(login, body), [400])),
  row('100 levels of lists', post(login, deep('[', ']', 100)), [400]),
  row('4,000 levels of lists', post(login, deep('[', ']', 4000)), [400]),
  row('800 levels of objects', post(login, deep('{"a":', '1}', 800).replace(/}1/g, '}')), [400]),
  row('lists that are never shut', post(login, '['.repeat(8000)), [400]),
  row('bytes that are no UTF-8', post(login, Buffer.from('7b2261223a22fffe227d', 'hex')), [400]),
  row('UTF-16', post(login, Buffer.from('{}', 'utf16le')), [400]),
  row('gzip that is none', post(login, '{}', 'Content-Encoding: gzip'), [415]),
  row('another encoding', post(login, '{}', 'Content-Encoding: br, gzip'), [415]),
  row('a type that is none', post(login, '{}', 'Content-Type: \u0001/('), [400, 415]),
  row(
    'a long type',
    [
      `POST ${login} HTTP/1.1\r\nHost: x\r\n${close}\r\nContent-Type: ` +
        `application/${'a.'.repeat(4000)}json\r\nContent-Length: 2${end}{}`,
    ],
    [415],
  ),
  row(
    'no type',
    `POST ${login} HTTP/1.1\r\nHost: x\r\n${close}\r\nContent-Length: 2${end}{}`,
    [415],
  ),
]
