// An answer of the dispatcher, written as HTTP.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { WireEvent, WireEvents } from '#contracts/contract.ts'
import type { HttpAnswer } from '#ports/http.ts'
import { eventStreamHeaders, type EventStreams } from './event-stream.ts'
import type { Shares, Subject } from './shares.ts'

/** What an answer needs: its request, its subject, and the bounds that it counts against. */
export type Sending = {
  readonly head: boolean
  /**
   * Headers of every answer. They are set together with the others: setting them one by one costs
   * more than the rest of a small answer.
   */
  readonly common: Readonly<Record<string, string>>
  readonly subject: Subject
  readonly streams: EventStreams
  readonly unread: Shares
}

/** Bytes up to which an answer does not count as unread. */
const smallBytes = 16_384

/** Answers are not cached unless the handler allows it. They may not run scripts or be framed. */
export const commonHeaders = {
  'cache-control': 'private, no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
} as const
/** Under TLS, browsers use only TLS for a year (RFC 6797). */
export const strictTransport = { 'strict-transport-security': 'max-age=31536000' } as const

export const isEnded = (events: WireEvents): events is readonly WireEvent[] => Array.isArray(events)

/** Holds a share of the process's unread bytes until the connection took the answer, or closed. */
function holdUnread(response: ServerResponse, bytes: number, { subject, unread }: Sending): void {
  if (bytes > smallBytes) response.once('close', unread.take(subject, bytes))
}

const escaped = (text: string) =>
  encodeURIComponent(text).replace(/['()*]/g, each => `%${each.charCodeAt(0).toString(16)}`)
const attachment = (filename: string) => ({
  'content-disposition': `attachment; filename*=UTF-8''${escaped(filename)}`,
})

/** Writes an answer. Faults of the shares are thrown before anything is written. */
export async function send(
  response: ServerResponse,
  { status, headers, content }: HttpAnswer,
  sending: Sending,
): Promise<void> {
  if (response.destroyed) return
  const begin = (own: Readonly<Record<string, string | number>> = {}) =>
    response.writeHead(status, { ...sending.common, ...own, ...headers })
  // restify changes Node's ServerResponse for the whole process: its writeHead returns nothing, so
  // calls cannot be chained.
  switch (content.kind) {
    case 'none':
      begin()
      response.end()
      return
    case 'json': {
      const bytes = Buffer.byteLength(content.text)
      holdUnread(response, bytes, sending)
      // A string, so that Node sends head and body in one write.
      begin({ 'content-type': 'application/json; charset=utf-8', 'content-length': bytes })
      response.end(content.text)
      return
    }
    case 'events': {
      const { events } = content
      const { streams, head, subject } = sending
      if (isEnded(events)) {
        const frames = head ? '' : streams.framesOf(events)
        holdUnread(response, frames.length, sending)
        begin(eventStreamHeaders)
        response.end(frames)
        return
      }
      const leave = head ? undefined : streams.enter(subject)
      begin(eventStreamHeaders)
      if (leave) await streams.send(response, events).finally(leave)
      else response.end()
      return
    }
    case 'bytes': {
      const { stream, mime, filename } = content.bytes
      if (stream instanceof Uint8Array) holdUnread(response, stream.length, sending)
      begin({
        'content-type': mime,
        ...(stream instanceof Uint8Array ? { 'content-length': stream.length } : {}),
        ...(filename === undefined ? {} : attachment(filename)),
      })
      if (sending.head) response.end()
      else if (stream instanceof Uint8Array) response.end(stream)
      else await pipeline(stream, response)
    }
  }
}

/** Closes the connection after an unread body: its rest would be taken for the next request. */
export const closeAfterUnread = (request: IncomingMessage, response: ServerResponse): void => {
  if (!request.complete) response.setHeader('connection', 'close')
}
