// Requests that nobody means well with: the bytes, and how the server may answer them.
export type Hostile = {
  readonly name: string
  /** Written one after the other, a moment apart. */
  readonly bytes: readonly (string | Buffer)[]
  /** Statuses of the first answer; `close`: the connection may end without one. */
  readonly expect: readonly (number | 'close')[]
  /** What the client does after the last byte: waits for the end, hangs up, or resets. */
  readonly then?: 'hang up' | 'reset'
}

const end = '\r\n\r\n'
const close = 'Connection: close'
const get = (target: string, ...lines: string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', close, ...lines].join('\r\n') + end
const post = (path: string, body: string | Buffer, ...lines: string[]) => [
  [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    close,
    'Content-Type: application/json',
    ...lines,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ].join('\r\n') + end,
  body,
]
const login = '/api/v1/auth/login'
const healthz = '/api/v1/healthz'
const row = (
  name: string,
  bytes: string | readonly (string | Buffer)[],
  expect: readonly (number | 'close')[],
  then?: Hostile['then'],
): Hostile => ({
  name,
  bytes: typeof bytes === 'string' ? [bytes] : bytes,
  expect,
  ...(then ? { then } : {}),
})

const badHosts = [
  '[',
  ']',
  '[]',
  '[::1',
  '[::1]x',
  '[::1]:',
  '[::1]:99999',
  '[g::1]',
  '[::1%25eth0]',
  '[v1.x]',
  'a b',
  'a\tb',
  'a:99999',
  'a:-1',
  'a:x',
  'a:1:2',
  'a:80:',
  ':80:80',
  'x/api/v1/metrics?',
  'x/../..',
  'x?y',
  'x#y',
  'user@x',
  'user:pass@x',
  'x\\y',
  'http://x',
  '//x',
  '<x>',
  'x,y',
  '"x"',
  'x%',
  'x%00',
  'x%zz',
  '{x}',
  'x|y',
  'x^y',
  'x`y',
  'ä',
  '\u0080',
  'x'.repeat(300),
  'a;b',
  '*',
  '%5b',
  "x'y",
]
const hosts = [
  ...badHosts.map(host =>
    row(
      `Host: ${host.slice(0, 30)}`,
      [Buffer.from(`GET ${healthz} HTTP/1.1\r\n${close}\r\nHost: ${host}${end}`, 'latin1')],
      [400],
    ),
  ),
  ...['x', 'localhost:8080', '127.0.0.1', '[::1]', '[::1]:8080', 'a.b-c_d', ''].map(host =>
    row(
      `Host: ${host} is one`,
      `GET ${healthz} HTTP/1.1\r\n${close}\r\nHost: ${host}${end}`,
      [200],
    ),
  ),
  row('no Host', `GET ${healthz} HTTP/1.1\r\n${close}${end}`, [400]),
  row('no Host in HTTP/1.0', `GET ${healthz} HTTP/1.0${end}`, [200]),
  row('a bad Host in HTTP/1.0', `GET ${healthz} HTTP/1.0\r\nHost: [${end}`, [400]),
  row('two Hosts', get(healthz, 'Host: y'), [400]),
  row('the same Host twice', get(healthz, 'Host: x'), [400]),
]

const targets = [
  ...[
    'http://[::1/',
    'http://[',
    'http://',
    'http:///x',
    'http://a b/',
    'http://x:99999/',
    'http://user@x/',
    'https://x',
    'ftp://x/',
    'x://y',
    'api/v1/healthz',
    '*',
    '?x',
    'javascript:alert(1)',
    'mailto:x',
    `http://x${healthz}#y`,
  ].map(target => row(`GET ${target}`, get(target), target === 'https://x' ? [404] : [400])),
  row('an absolute target', get(`http://x${healthz}`), [200]),
  row('an absolute target with a query only', get('http://x?y=1'), [404]),
  row('a fragment', get(`${healthz}#x`), [400]),
  row('a path that begins with two strokes', get(`/${healthz}`), [404]),
  row('//[ as a path', get('//['), [404]),
  row('a path of strokes', get('/'.repeat(4000)), [404]),
  row('dots that lead out', get('/api/v1/../../../etc/passwd'), [404]),
  row('dots that lead back', get('/api/v1/x/../healthz'), [404]),
  row('dots as escapes', get('/api/v1/x/%2e%2e/healthz'), [404]),
  row('a stroke as an escape', get('/api%2Fv1%2Fhealthz'), [404]),
  row('backslashes', get('\\api\\v1\\healthz'), [400]),
  row('a backslash within', get('/api\\v1\\healthz'), [404]),
  row('a semicolon', get(`${healthz};x=1`), [404]),
  row('escapes that are no UTF-8', get('/api/v1/%FF'), [400]),
  row('half an escape', get('/api/v1/%F'), [400]),
  row('a percent sign', get('/%'), [400]),
  row('an overlong escape', get('/api/v1/%C0%AFhealthz'), [400]),
  row('%00', get('/api/v1/healthz%00'), [404]),
  row('%0d%0a', get('/api/v1/healthz%0d%0aX:%20y'), [404]),
  row('escapes of escapes', get(`/${'%25'.repeat(2000)}`), [404]),
  row('bytes above 127', [Buffer.from(get('/api/v1/\u00ff\u00fe'), 'latin1')], [400]),
  row('a space in the target', `GET /a b HTTP/1.1\r\nHost: x${end}`, [400]),
  row('a target of 9,000 characters', get(`/${'a'.repeat(9000)}`), [414]),
  row('a target of 100,000 characters', get(`/${'a'.repeat(100_000)}`), [431, 414]),
  row('an id of 5,000 characters', get(`/api/v1/runs/${'a'.repeat(5000)}/events`), [404, 401]),
  row('no target', `GET  HTTP/1.1\r\nHost: x${end}`, [400]),
  row(
    'a literal beside a parameter',
    `PATCH /api/v1/sessions/search HTTP/1.1\r\nHost: x\r\n${close}${end}`,
    [405],
  ),
  row(
    'the same as an escape',
    `PATCH /api/v1/sessions/%73earch HTTP/1.1\r\nHost: x\r\n${close}${end}`,
    [405],
  ),
]

const queries = [
  ...[
    `?${'a=1&'.repeat(1500)}`,
    '?__proto__=1',
    '?constructor=1',
    '?a[b][c]=1',
    `?a${'['.repeat(3000)}=1`,
    '?%FF=1',
    '?a=%',
    '?=',
    '?&&&&',
    '??',
    '?a=1?b=2',
    '?limit=1&limit=2',
    '?cursor=%00',
    '?q=%F0%9F%92%A5',
    '?toString=1',
    '?a=b#c',
  ].map(query => row(`a query ${query.slice(0, 20)}`, get(`/api/v1/sessions${query}`), [400, 401])),
  row('a query that is no UTF-8 to what takes none', get(`${healthz}?%FF`), [200]),
  row('a query to what takes none', get(`${healthz}?${'x=1&'.repeat(1000)}`), [200]),
]

const methods = [
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
const upgrades = [
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

const headers = [
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

const framing = (...lines: string[]) =>
  [`POST ${login} HTTP/1.1`, 'Host: x', close, 'Content-Type: application/json', ...lines].join(
    '\r\n',
  ) + end
const frames = [
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
const bodies = [
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

const hello = Buffer.from('16030100c8010000c40303' + '00'.repeat(190), 'hex')
const protocols = [
  row('a TLS greeting', [hello], [400, 'close'], 'hang up'),
  row('HTTP/0.9', 'GET /\r\n', [400, 'close'], 'hang up'),
  row('HTTP/9.9', `GET ${healthz} HTTP/9.9\r\nHost: x${end}`, [400, 505]),
  row('HTTP/1.9', `GET ${healthz} HTTP/1.9\r\nHost: x${end}`, [400, 200, 505]),
  row('http/1.1', `GET ${healthz} http/1.1\r\nHost: x${end}`, [400]),
  row('SSH', 'SSH-2.0-OpenSSH_9.6\r\n', [400]),
  row('SMTP', 'EHLO x\r\n', [400]),
  row('zeros', [Buffer.alloc(1000)], [400]),
  row(
    'empty lines first',
    `${'\r\n'.repeat(100)}GET ${healthz} HTTP/1.1\r\nHost: x\r\n${close}${end}`,
    [200],
  ),
  row('a hundred thousand empty lines', '\r\n'.repeat(100_000), ['close', 400], 'hang up'),
  row('nothing', '', ['close'], 'hang up'),
  row('half a line', 'GET /api', ['close', 400], 'hang up'),
  row('half a head', `GET ${healthz} HTTP/1.1\r\nHost:`, ['close', 400], 'hang up'),
  row('a reset in the head', `GET ${healthz} HTTP/1.1\r\nHo`, ['close'], 'reset'),
  row('a reset in the body', framing('Content-Length: 2000') + '{', ['close'], 'reset'),
  row('a reset in a chunk', framing('Transfer-Encoding: chunked') + 'ff\r\n{', ['close'], 'reset'),
  row('a reset after the request', get('/api/v1/docs'), ['close'], 'reset'),
  row(
    'a reset among many requests',
    `GET /api/v1/docs HTTP/1.1\r\nHost: x${end}`.repeat(200),
    ['close'],
    'reset',
  ),
  row(
    '400 requests at once',
    `GET /api/v1/openapi.json HTTP/1.1\r\nHost: x${end}`.repeat(399) + get('/api/v1/openapi.json'),
    [200],
  ),
  row(
    'a good request, then nonsense',
    [`GET ${healthz} HTTP/1.1\r\nHost: x${end}`, '\u0001\u0002'],
    [200],
  ),
  row(
    'a bad request, then a good one',
    `GET ${healthz} HTTP/1.1\r\nHost: [${end}${get(healthz)}`,
    [400],
  ),
]

export const hostileRequests: readonly Hostile[] = [
  ...hosts,
  ...targets,
  ...queries,
  ...methods,
  ...upgrades,
  ...headers,
  ...frames,
  ...bodies,
  ...protocols,
]
