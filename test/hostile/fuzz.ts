// Random requests over the socket, made of pieces that a parser may trip over; what is found is
// made smaller and told with its seed.
//   npm run fuzz [-- --seconds 60] [--seed 1]
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { startServer, type TestServer } from '../conformance/plugin/server.ts'
import { headerOf, say, type Heard } from './wire.ts'

const oneOf = (...values: string[]) => fc.constantFrom(...values)
const noise = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  oneOf(
    '',
    ' ',
    '[',
    ']',
    '%',
    '%00',
    '%ff',
    '../',
    '//',
    '\\',
    '\u0000',
    '?',
    '#',
    ':',
    ',',
    ';',
    '"',
    "'",
    '{',
    '}',
    '*',
    '__proto__',
    'constructor',
    '1e999',
    '-1',
    '\ufeff',
    '\ud800',
    '\u202e',
  ),
)

const anyMethod = fc.oneof(
  { weight: 5, arbitrary: oneOf('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS') },
  {
    weight: 1,
    arbitrary: fc.oneof(oneOf('CONNECT', 'TRACE', 'PRI', 'get', 'M-SEARCH', 'PURGE'), noise),
  },
)
const segment = fc.oneof(
  oneOf(
    'api',
    'v1',
    'healthz',
    'sessions',
    'search',
    'runs',
    'events',
    'uploads',
    'auth',
    'login',
    'docs',
    'openapi.json',
    'chat',
    'metrics',
    '00000000-0000-7000-8000-00000000dead',
  ),
  noise,
)
const path = fc.oneof(
  oneOf(
    '/api/v1/healthz',
    '/api/v1/sessions',
    '/api/v1/chat',
    '/api/v1/auth/login',
    '/api/v1/auth/token',
    '/api/v1/uploads',
    '/api/v1/runs/00000000-0000-7000-8000-00000000dead/events',
    '/api/v1/docs',
  ),
  fc.array(segment, { maxLength: 6 }).map(parts => `/${parts.join('/')}`),
)
const query = fc.oneof(
  fc.constant(''),
  fc
    .array(fc.tuple(fc.oneof(oneOf('limit', 'cursor', 'q', 'after'), noise), noise), {
      maxLength: 4,
    })
    .map(pairs => `?${pairs.map(pair => pair.join('=')).join('&')}`),
)
const anyTarget = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(path, query).map(parts => parts.join('')) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(oneOf('http://', 'https://', '', 'ftp://'), noise, path)
      .map(parts => parts.join('')),
  },
  { weight: 1, arbitrary: noise },
)

const name = fc.oneof(
  oneOf(
    'Host',
    'Connection',
    'Upgrade',
    'Expect',
    'Content-Type',
    'Content-Length',
    'Transfer-Encoding',
    'Content-Encoding',
    'Authorization',
    'X-API-Key',
    'Idempotency-Key',
    'Last-Event-ID',
    'X-Request-Id',
    'X-Forwarded-For',
    'Origin',
    'Accept',
    'If-None-Match',
    'traceparent',
    'TE',
    'Trailer',
    'Cookie',
    'Range',
  ),
  noise,
)
const value = fc.oneof(
  oneOf(
    'x',
    'close',
    'keep-alive',
    'Upgrade',
    'websocket',
    'h2c',
    '100-continue',
    'application/json',
    'chunked',
    'gzip',
    'identity',
    '0',
    '2',
    '10',
    'Bearer x',
    'a, b',
    '[::1]:80',
    'a:99999',
  ),
  noise,
)
/** Stands for the token of an account. */
const signedIn = 'Authorization: Bearer <token>'
const header = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(name, value).map(([left, right]) => `${left}: ${right}`) },
  { weight: 2, arbitrary: fc.constant(signedIn) },
)
const json = fc.json({ maxDepth: 4 })
const anyBody = fc.oneof(
  fc.constant(''),
  json,
  json.map(text => `{"email":${text},"password":${text},"message":${text}}`),
  noise,
  fc.nat({ max: 3000 }).map(depth => '['.repeat(depth)),
)
const anyChunks = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.nat({ max: 20 }).map(size => size.toString(16)),
        noise,
      ),
      noise,
    ),
    { maxLength: 4 },
  )
  .map(parts => `${parts.map(([size, text]) => `${size}\r\n${text}\r\n`).join('')}0\r\n\r\n`)

const request = fc
  .record({
    method: anyMethod,
    target: anyTarget,
    version: fc.oneof(
      { weight: 9, arbitrary: fc.constant('HTTP/1.1') },
      { weight: 1, arbitrary: fc.oneof(oneOf('HTTP/1.0', 'HTTP/2.0', ''), noise) },
    ),
    headers: fc.array(header, { maxLength: 6 }),
    framing: oneOf('length', 'length', 'wrong', 'chunks', 'none'),
    body: anyBody,
    chunks: anyChunks,
    end: oneOf('\r\n', '\r\n', '\r\n', '\n'),
  })
  .map(({ method, target, version, headers, framing, body, chunks, end }) => {
    const frame = {
      length: [`Content-Length: ${Buffer.byteLength(body)}`],
      wrong: [`Content-Length: ${Buffer.byteLength(body) + 3}`],
      chunks: ['Transfer-Encoding: chunked'],
      none: [],
    }[framing as 'length']
    return (
      [
        `${method} ${target} ${version}`,
        'Host: x',
        'Content-Type: application/json',
        ...headers,
        ...frame,
      ].join(end) +
      end +
      end +
      (framing === 'chunks' ? chunks : body)
    )
  })
/** One to three on a connection, each whole or broken somewhere, then hung up on. */
const conversation = fc.record({
  requests: fc.array(request, { minLength: 1, maxLength: 3 }),
  cut: fc.option(fc.nat({ max: 400 }), { freq: 5 }),
  then: oneOf('hang up', 'hang up', 'hang up', 'reset'),
})

/** Undefined where the answer is as it must be. */
function complaintOf({ status, head, body, bytes }: Heard, heard: Heard): string | undefined {
  if (status === 'close') return bytes > 0 ? `no HTTP: ${head.slice(0, 100)}` : undefined
  if (status >= 500 && status !== 503) return `${status} ${body.slice(0, 300)}`
  if (headerOf(heard, 'x-request-id') === undefined && status !== 100)
    return `${status} without X-Request-Id`
  return undefined
}

/**
 * Plays until the time is over; the first complaint, made as small as it can be, is thrown. Answers
 * how many conversations there were.
 */
export async function fuzz(
  server: TestServer,
  { seconds, seed }: { seconds: number; seed: number },
): Promise<number> {
  const port = Number(new URL(server.root).port)
  const { token } = await server.account()
  let count = 0
  await fc.assert(
    fc.asyncProperty(conversation, async ({ requests, cut, then }) => {
      count++
      const whole = Buffer.from(requests.join('').replaceAll('<token>', token), 'utf8')
      const heard = await say(
        port,
        [cut === null ? whole : whole.subarray(0, cut)],
        then as 'reset',
      )
      const complaint = complaintOf(heard, heard)
      if (complaint) throw new Error(complaint)
      const alive = await say(port, [
        'GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      ])
      if (alive.status !== 200) throw new Error(`the next one was answered ${alive.status}`)
      const failed = server.logged
        .splice(0)
        .filter(line => /request\.failed|http\.send|process\.defect/.test(line))
      if (failed.length > 0) throw new Error(failed[0])
    }),
    {
      seed,
      numRuns: 1_000_000,
      interruptAfterTimeLimit: seconds * 1000,
      markInterruptAsFailure: false,
    },
  )
  return count
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(process.pid) },
    },
  })
  const server = await startServer()
  try {
    const count = await fuzz(server, { seconds: Number(values.seconds), seed: Number(values.seed) })
    process.stdout.write(`${count} conversations, nothing found (seed ${values.seed}).\n`)
  } finally {
    await server.stop()
  }
}
