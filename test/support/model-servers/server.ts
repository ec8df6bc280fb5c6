// A local server that speaks a model provider's wire over HTTP, cuts its frames at odd places, and
// does what it is told for each call.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { chat } from './chat.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'
import { talk, type Asked, type Turn, type Wire } from './turn.ts'

export const wires = { chat, responses, messages } as const
export type WireName = keyof typeof wires
type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}
export type ModelServer = Awaited<ReturnType<typeof startModelServer>>

/** Odd lengths, never a frame's own; enough of them to come in many reads. */
const sliceSizes = [1, 37, 5, 211, 3, 89, 17, 401]

/**
 * `answer` decides each call; the default is a model that can do what the kit asks for. `key`: the
 * only one that is let in.
 */
export async function startModelServer(
  name: WireName,
  { answer = talk, key }: { answer?: (asked: Asked, call: number) => Turn; key?: string } = {},
) {
  const wire: Wire = wires[name]
  const received: Received[] = []
  const kept = new Map<string, string[]>()
  const cancelled: string[] = []
  let left = 0
  let calls = 0
  let open = 0

  async function write(
    to: ServerResponse,
    frames: readonly string[],
    { cutAt, stallAt, endAt, inject, whole }: Turn,
  ): Promise<void> {
    const told = inject === undefined ? frames : frames.toSpliced(inject.before, 0, inject.frame)
    const body = told.join('')
    const stop = cutAt ?? stallAt ?? endAt
    const bytes = Buffer.from(stop === undefined ? body : body.slice(0, stop(body)))
    for (let at = 0, n = 0; at < bytes.length && !to.destroyed; n++) {
      const size = whole === true ? bytes.length : sliceSizes[n % sliceSizes.length]!
      to.write(bytes.subarray(at, at + size))
      at += size
      await setImmediate()
    }
    // What was written leaves before the connection goes.
    if (cutAt !== undefined) to.socket?.end(() => to.destroy())
    else if (stallAt === undefined) to.end()
  }
  // In two steps: where restify is loaded too, `writeHead` answers nothing.
  const reply = (to: ServerResponse, status: number, body: string, headers = {}): void => {
    to.writeHead(status, { 'content-type': 'application/json', ...headers })
    to.end(body)
  }
  const refuse = (
    to: ServerResponse,
    status: number,
    error: NonNullable<Turn['error']>,
    headers = {},
  ): void => reply(to, status, wire.refusal(error), headers)
  const begin = (to: ServerResponse, headers = {}): void => {
    to.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    to.flushHeaders()
  }
  async function complete(to: ServerResponse, { body, headers }: Received): Promise<void> {
    const why = wire.check(body, headers)
    if (why !== undefined) return refuse(to, 400, { type: 'invalid_request_error', message: why })
    const asked = wire.asked(body)
    const turn = answer(asked, ++calls)
    if (turn.hangs) return
    if (turn.body !== undefined) return reply(to, turn.status ?? 200, turn.body, turn.headers)
    if (turn.status !== undefined)
      return refuse(
        to,
        turn.status,
        turn.error ?? { type: 'api_error', message: 'It went wrong.' },
        turn.headers,
      )
    const frames = wire.frames(turn, asked)
    // A background response goes on whether somebody reads it or not.
    if (body['background'] === true) kept.set('resp_1', frames)
    begin(to, turn.headers)
    await write(to, frames, turn)
  }
  const server = createServer(async (from, to) => {
    open++
    to.on('close', () => {
      open--
      if (!to.writableFinished) left++
    })
    const content = await text(from)
    const { pathname, searchParams } = new URL(from.url!, 'http://localhost')
    const call: Received = {
      method: from.method!,
      path: pathname,
      headers: from.headers,
      body: content === '' ? {} : (JSON.parse(content) as Record<string, unknown>),
    }
    received.push(call)
    if (
      key !== undefined &&
      from.headers['authorization'] !== `Bearer ${key}` &&
      from.headers['x-api-key'] !== key
    )
      return refuse(to, 401, {
        type: 'authentication_error',
        code: 'invalid_api_key',
        message:
          'Incorrect API key provided: ' +
          `${from.headers['authorization'] ?? String(from.headers['x-api-key'])}`,
      })
    if (pathname === '/v1/models')
      return reply(to, 200, JSON.stringify({ object: 'list', data: [], has_more: false }))
    if (pathname === wire.path && from.method === 'POST') return complete(to, call)
    const [, id = '', action] = /^\/v1\/responses\/([^/]+)(?:\/(\w+))?$/.exec(pathname) ?? []
    const frames = kept.get(id)
    if (frames === undefined)
      return refuse(to, 404, { type: 'invalid_request_error', message: 'There is no such thing.' })
    if (action === 'cancel') {
      cancelled.push(id)
      return reply(to, 200, JSON.stringify({ id, object: 'response', status: 'cancelled' }))
    }
    begin(to)
    await write(to, frames.slice(Number(searchParams.get('starting_after') ?? -1) + 1), {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    /** As the adapter's URL names it. */
    base: name === 'messages' ? origin : `${origin}/v1`,
    received,
    cancelled,
    /** Calls of the wire itself. */
    calls: () => received.filter(({ path, method }) => path === wire.path && method === 'POST'),
    /** Answers whose reader went away before their end. */
    left: () => left,
    open: () => open,
    stop: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
