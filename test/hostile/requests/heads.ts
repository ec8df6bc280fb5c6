// Methods, upgrades and headers that nobody should send.
import { close, end, get, healthz, login, post, row } from './row.ts'

export const methods = [
  ...[
    'TRACE',
    'PROPFIND',
    'PURGE',
    'LINK',
    'M-SEARCH',
    'SEARCH',
    'LOCK',
    'MKCOL',
    'PUT',
    'DELETE',
    'PATCH',
    'QUERY',
  ].map(method => row(method, `${method} ${healthz} HTTP/1.1\r\nHost: x\r\n${close}${end}`, [405])),
  ...['get', 'GE', 'GETT', 'FOO', 'G\u0000T', '', ' GET', '\u0001\u0002'].map(method =>
    row(`the method ${JSON.stringify(method)}`, `${method} ${healthz} HTTP/1.1\r\nHost: x${end}`, [
      400,
      'close',
    ]),
  ),
  row('PRI * HTTP/2.0', `PRI * HTTP/2.0${end}SM${end}`, [400]),
  row('OPTIONS *', `OPTIONS * HTTP/1.1\r\nHost: x\r\n${close}${end}`, [204]),
  row('HEAD of nothing', `HEAD /nowhere HTTP/1.1\r\nHost: x\r\n${close}${end}`, [404]),
  ...['x:443', '/', '[', 'x', '127.0.0.1:22', '*'].map(target =>
    row(`CONNECT ${target}`, `CONNECT ${target} HTTP/1.1\r\nHost: x${end}`, [400, 405]),
  ),
  row('CONNECT and a reset', `CONNECT x:443 HTTP/1.1\r\nHost: x${end}`, ['close'], 'reset'),
]

const upgrade = (protocol: string, ...more: string[]) =>
  [
    `GET ${healthz} HTTP/1.1`,
    'Host: x',
    'Connection: Upgrade, close',
    `Upgrade: ${protocol}`,
    ...more,
  ].join('\r\n') + end
export const upgrades = [
  ...['websocket', 'h2c', 'TLS/1.0', 'HTTP/2.0', 'x', ''].map(protocol =>
    row(`Upgrade: ${protocol}`, upgrade(protocol), [200]),
  ),
  row(
    'Upgrade with a key',
    upgrade('websocket', 'Sec-WebSocket-Key: x', 'Sec-WebSocket-Version: 13'),
    [200],
  ),
  row('h2c with settings', upgrade('h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'), [200]),
  row(
    'Upgrade of a POST with a body',
    post(login, '{}', 'Connection: Upgrade', 'Upgrade: h2c'),
    [400],
  ),
  row(
    'Connection: Upgrade without Upgrade',
    `GET ${healthz} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close${end}`,
    [200],
  ),
  row('Upgrade without Connection', get(healthz, 'Upgrade: websocket'), [200]),
  row('Upgrade and a reset', upgrade('websocket'), ['close'], 'reset'),
  row(
    'Upgrade, bytes of another protocol, and a reset',
    [upgrade('h2c'), Buffer.from('505249202a20485454502f322e300d0a', 'hex')],
    [200, 'close'],
    'reset',
  ),
]

export const headers = [
  row('20,000 bytes of a header', get(healthz, `X-A: ${'a'.repeat(20_000)}`), [431]),
  row('300 headers', get(healthz, ...Array.from({ length: 300 }, (_, i) => `X-${i}: y`)), [200]),
  row(
    '2,500 headers of one letter',
    get(healthz, ...Array.from({ length: 2500 }, () => 'a: b')),
    [200, 431],
  ),
  row('a header without a colon', get(healthz, 'nonsense'), [400]),
  row('a header without a name', get(healthz, ': x'), [400]),
  row('a space before the colon', get(healthz, 'X : y'), [400]),
  row('a folded header', get(healthz, 'X-A: b\r\n c'), [400, 200]),
  row('a NUL in a header', get(healthz, 'X: a\u0000b'), [400]),
  row('a line feed alone', `GET ${healthz} HTTP/1.1\nHost: x\n${close}\n\n`, [400, 200]),
  row('a carriage return alone', `GET ${healthz} HTTP/1.1\rHost: x\r\r`, [400]),
  row('a request id that is none', get(healthz, 'X-Request-Id: <script>'), [200]),
  row('a header named __proto__', get(healthz, '__proto__: x'), [200]),
  row('a header named constructor', get(healthz, 'constructor: x'), [200]),
  row('Accept-Version', get(healthz, 'Accept-Version: ~1', 'X-Api-Version: 9'), [200]),
  row('a long Accept', get(healthz, `Accept: ${'text/html;q=0.1,'.repeat(500)}`), [200]),
  row('an Origin of nonsense', get(healthz, `Origin: ${'('.repeat(5000)}`), [200]),
  row('X-Forwarded-For of nonsense', get(healthz, `X-Forwarded-For: ${'[,'.repeat(2000)}`), [200]),
  row('traceparent of nonsense', get(healthz, 'traceparent: 00-zz-zz-zz', 'tracestate: ='), [200]),
  row(
    'a long Authorization',
    get('/api/v1/balance', `Authorization: Bearer ${'a.'.repeat(4000)}`),
    [401],
  ),
  row(
    'a long space in Authorization',
    get('/api/v1/balance', `Authorization: Bearer${' '.repeat(8000)}x`),
    [401],
  ),
  row(
    'Authorization twice',
    get('/api/v1/balance', 'Authorization: Bearer a', 'Authorization: Bearer b'),
    [401],
  ),
  row(
    'If-None-Match of nonsense',
    get('/api/v1/docs', `If-None-Match: ${'"'.repeat(5000)}`),
    [200],
  ),
  row('Range', get('/api/v1/docs', 'Range: bytes=0-0,-1,5-2'), [200]),
  row('Expect: 100-continue', post(login, '{}', 'Expect: 100-continue'), [400, 100]),
  row('Expect of something else', post(login, '{}', 'Expect: a-miracle'), [417]),
  row(
    'Last-Event-ID of nonsense',
    get('/api/v1/runs/x/events', 'Last-Event-ID: \u0001'),
    [400, 401],
  ),
  row('Trailer', get(healthz, 'Trailer: Host', 'TE: trailers'), [200]),
]
