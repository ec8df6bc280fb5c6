// Answers errors that come before a request exists: unreadable heads, tunnels, silence. The usual
// JSON is written to the socket directly.
import { STATUS_CODES, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { fault, type Fault } from '#contracts/faults.ts'
import type { HttpAnswer } from '#ports/http.ts'
import type { Pipeline } from './pipeline.ts'

type Parts = {
  readonly pipeline: Pipeline
  /** In milliseconds. */
  readonly headMs: number
  readonly silenceMs: number
  readonly refuse: (refusal: Fault) => { readonly answer: HttpAnswer; readonly id: string }
  readonly headers: Readonly<Record<string, string>>
}

/** Maps the parser's codes (llhttp) to faults. */
function faultOf({ code }: NodeJS.ErrnoException, headMs: number): Fault {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return fault('HEADERS_TOO_LARGE')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return fault('MALFORMED_REQUEST', { why: 'the extensions of a chunk are too long' })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return fault('REQUEST_TIMEOUT', { what: 'The head', seconds: Math.ceil(headMs / 1000) })
    default:
      return fault('MALFORMED_REQUEST', { why: 'it is not HTTP/1.1' })
  }
}

export function handleConnectionErrors(
  server: Server,
  { pipeline, headMs, silenceMs, refuse, headers }: Parts,
): void {
  const say = (socket: Duplex, refusal: Fault) => {
    if (!socket.writable) return void socket.destroy()
    const { answer, id } = refuse(refusal)
    const text = answer.content.kind === 'json' ? answer.content.text : ''
    const fields = Object.entries({
      ...headers,
      ...answer.headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-request-id': id,
      connection: 'close',
    })
    const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const reason = STATUS_CODES[answer.status] ?? 'Refused'
    socket.end(`HTTP/1.1 ${answer.status} ${reason}\r\n${head}\r\n${text}`, () => socket.destroy())
  }
  server.on('connection', (socket: Socket) => socket.on('error', () => socket.destroy()))
  server.on('secureConnection', (socket: Socket) => socket.on('error', () => socket.destroy()))
  server.on('clientError', (error: NodeJS.ErrnoException, duplex: Duplex) => {
    const socket = duplex as Socket
    const current = pipeline.current(socket)
    // Other errors belong to the connection (a reset, a failed or stuck TLS handshake): nobody can
    // be answered.
    if (!/^(?:HPE|ERR_HTTP)_/.test(error.code ?? '') || !socket.writable)
      return void socket.destroy()
    if (current?.response.headersSent && !current.request.complete) return void socket.destroy()
    // The error is in the body of the current request, or in a later request. A later one waits
    // until the current answer was sent.
    if (current && !current.request.complete) say(socket, faultOf(error, headMs))
    else pipeline.atEnd(socket, () => say(socket, faultOf(error, headMs)))
  })
  // Refuses tunnels: this server is no proxy, and the target of a tunnel is no path.
  server.on('connect', (_request, duplex: Duplex) => {
    duplex.on('error', () => duplex.destroy())
    pipeline.atEnd(duplex as Socket, () =>
      say(duplex, fault('MALFORMED_REQUEST', { why: 'this server is no proxy' })),
    )
  })
  server.on('timeout', (socket: Socket) => {
    const current = pipeline.current(socket)
    const seconds = Math.ceil(silenceMs / 1000)
    if (!current || current.response.headersSent) return void socket.destroy()
    say(
      socket,
      current.request.complete
        ? fault('UNAVAILABLE', { what: 'The answer', why: `it was not ready after ${seconds} s` })
        : fault('REQUEST_TIMEOUT', { what: 'The body', seconds }),
    )
  })
}
