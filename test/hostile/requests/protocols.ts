// Other protocols, halves of requests, and requests one after the other.
import { close, end, framing, get, healthz, row } from './row.ts'

const hello = Buffer.from('16030100c8010000c40303' + '00'.repeat(190), 'hex')
export const protocols = [
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
