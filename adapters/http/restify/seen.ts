// Notes about each request before it is routed, for its answer and its report.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '#ports/clock.ts'
import type { HttpReport } from '#ports/http.ts'
import type { Target } from '../lib/request-target.ts'

export type Seen = {
  readonly id: string
  route: string
  readonly startedAt: number
  /** When the answer's stream began. */
  begunAt?: number
  readonly head: boolean
  readonly target: Target
  readonly address: string
  /** Tells the client to send the body (RFC 9110, section 10.1.1). */
  goOn?: () => void
}
export type Request = IncomingMessage & { seen: Seen }

type Parts = {
  readonly clock: Clock
  readonly addressOf: (request: IncomingMessage) => string
  readonly headers: Readonly<Record<string, string>>
  readonly report: HttpReport
}
/**
 * Attaches a note to a request. The request is reported when its answer was sent, or when its
 * connection has ended.
 */
export const createNote =
  ({ clock, addressOf, headers, report }: Parts) =>
  (request: Request, response: ServerResponse, target: Target): void => {
    const given = request.headers['x-request-id']
    const head = request.method === 'HEAD'
    const seen: Seen = {
      id: typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : clock.id(),
      route: 'unknown',
      startedAt: clock.monotonic(),
      head,
      target,
      address: addressOf(request),
    }
    request.seen = seen
    // CORS answers preflights directly, so their headers are set here.
    if (request.method === 'OPTIONS')
      for (const [name, value] of Object.entries({ ...headers, 'x-request-id': seen.id }))
        response.setHeader(name, value)
    response.once('close', () =>
      report({
        method: request.method ?? '',
        route: seen.route,
        status: response.statusCode,
        seconds: ((seen.begunAt ?? clock.monotonic()) - seen.startedAt) / 1000,
        id: seen.id,
      }),
    )
  }
