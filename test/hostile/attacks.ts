// What a hostile client does, one kind of attack at a time, each bounded in bytes and time. Run by
// attacker.ts.
import { connect, type Socket } from 'node:net'
import { hostileRequests } from './requests.ts'
import { say } from './wire.ts'

export type Target = {
  readonly port: number
  readonly token: string
  readonly random: () => number
}
type Attack = (target: Target) => Promise<unknown>

/** How long a connection is held. */
const heldMs = 2000
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const pick = <T>(list: readonly T[], random: () => number): T =>
  list[Math.floor(random() * list.length)]!
const times = (count: number) => Array.from({ length: count }, (_, n) => n)

const head = (method: string, path: string, headers: readonly string[]) =>
  [`${method} /api/v1${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
const bearer = ({ token }: Target) => `Authorization: Bearer ${token}`
const address = ({ random }: Target) => `X-Forwarded-For: 198.51.100.${Math.floor(random() * 250)}`

async function call(
  target: Target,
  method: string,
  path: string,
  body?: unknown,
): Promise<Record<string, unknown>> {
  const response = await fetch(`http://127.0.0.1:${target.port}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${target.token}`,
      'content-type': 'application/json',
      'x-forwarded-for': '198.51.100.1',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return response.json().catch(() => ({})) as Promise<Record<string, unknown>>
}
/** Connections that say their words, read nothing, and stay for a while. */
async function hold(target: Target, count: number, words: string, trickle?: string): Promise<void> {
  const sockets = times(count).map(
    (): Socket =>
      connect(target.port, '127.0.0.1')
        .on('error', () => undefined)
        .pause(),
  )
  for (const socket of sockets) socket.write(words)
  for (let at = 0; at < heldMs; at += 200) {
    if (trickle !== undefined)
      for (const socket of sockets) if (socket.writable) socket.write(trickle)
    await pause(200)
  }
  for (const socket of sockets) socket.destroy()
}
const texts = [
  '\u0301'.repeat(60_000),
  'a\u0327\u0301'.repeat(20_000),
  '\n'.repeat(100_000),
  '- [ ] '.repeat(15_000),
  '\u200d'.repeat(50_000),
  '\ufdfa'.repeat(15_000),
  `${'('.repeat(20_000)}${')'.repeat(20_000)}`,
  '1. '.repeat(20_000),
  '👨‍👩‍👧‍👦'.repeat(4000),
  '\u202e\u2066'.repeat(20_000),
  'https://'.repeat(10_000),
  '`'.repeat(50_000),
]
const expressions = [
  'atan(1e2501)',
  'asin(1e-4999)',
  '9^9^9^9',
  'factorial(1000)*factorial(1000)',
  'tan(1e4999)',
  '(1+1e-59)^1e59',
  'mean(ln(7),ln(7),ln(7))',
]
const called = (expression: string) => `[[tool=calculator ${JSON.stringify({ expression })}]]`

export const attacks: Readonly<Record<string, Attack>> = {
  'raw requests': async target => {
    for (const { bytes, then } of times(20).map(() => pick(hostileRequests, target.random)))
      await say(target.port, bytes, then, 30_000)
  },
  resets: async target =>
    Promise.all(
      times(20).map(n =>
        say(
          target.port,
          [head('POST', '/chat', [bearer(target), 'Content-Length: 100']), '{"mess'.slice(0, n)],
          'reset',
          30_000,
        ),
      ),
    ),
  upgrades: async target =>
    Promise.all(
      times(10).map(() =>
        say(
          target.port,
          [head('GET', '/healthz', ['Connection: Upgrade', 'Upgrade: websocket'])],
          'reset',
          30_000,
        ),
      ),
    ),
  'half-sent bodies': target =>
    hold(
      target,
      20,
      head('POST', '/uploads', [
        bearer(target),
        address(target),
        'Content-Type: application/json',
        'Content-Length: 1000000',
      ]) + `{"filename":"${'x'.repeat(60_000)}`,
    ),
  'slow uploads': target =>
    hold(
      target,
      10,
      head('POST', '/uploads', [
        bearer(target),
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ]),
      '1\r\n{\r\n',
    ),
  'slow heads': target => hold(target, 20, 'GET /api/v1/healthz HTTP/1.1\r\n', 'X-A: b\r\n'),
  'unread answers': target =>
    hold(target, 5, head('GET', '/openapi.json', [address(target)]).repeat(100)),
  'pipelined requests': target =>
    hold(target, 2, head('GET', '/docs', [address(target)]).repeat(200)),
  'wrong passwords': async target =>
    Promise.all(
      times(10).map(n =>
        call(target, 'POST', '/auth/login', { email: `${n}@example.org`, password: 'wrong' }),
      ),
    ),
  registrations: async target =>
    Promise.all(
      times(3).map(n =>
        call(target, 'POST', '/auth/register', {
          email: `${Math.floor(target.random() * 1e6)}.${n}@example.org`,
          password: 'x'.repeat(256),
        }),
      ),
    ),
  'deep and wide JSON': async target =>
    Promise.all([
      say(
        target.port,
        [
          head('POST', '/chat', [
            bearer(target),
            'Content-Type: application/json',
            'Content-Length: 100000',
            'Connection: close',
          ]),
          '['.repeat(100_000),
        ],
        undefined,
        30_000,
      ),
      call(target, 'POST', '/chat', Object.fromEntries(times(20_000).map(n => [`field ${n}`, n]))),
    ]),
  'hostile messages': async target => {
    const text = pick(texts, target.random)
    const { session_id } = await call(target, 'POST', '/chat', { message: text })
    await call(target, 'PATCH', `/sessions/${String(session_id)}`, { title: text.slice(0, 200) })
    await call(target, 'GET', `/sessions/search?q=${encodeURIComponent(text.slice(0, 400))}`)
  },
  'hostile expressions': target =>
    call(target, 'POST', '/chat', { message: called(pick(expressions, target.random)) }),
  'hostile tool calls': target => {
    const calls = [
      ...times(20).map(n => ['calculator', { expression: `${n}^${n}` }]),
      ['nothing', {}],
      ['note', { title: '\u0301'.repeat(200) }],
    ]
    return call(target, 'POST', '/chat', {
      message: `[[parallel_tools=${JSON.stringify(calls)}]]`,
    })
  },
  'abandoned streams': async target => {
    const { run_id } = await call(target, 'POST', '/chat', {
      message: '[[tokens=40]][[interval_ms=50]]',
    })
    await hold(
      target,
      30,
      head('GET', `/runs/${String(run_id)}/events`, [bearer(target), address(target)]),
    )
  },
  branches: async target => {
    const { session_id } = await call(target, 'POST', '/chat', { message: 'x'.repeat(50_000) })
    await pause(300)
    await Promise.all(
      times(10).map(() => call(target, 'POST', `/sessions/${String(session_id)}/branch`, {})),
    )
  },
}
