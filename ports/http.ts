// The server side of HTTP: routes in, calls out. The kernel's dispatcher answers them; plugins
// never see this.
import type { Bytes, Method, WireEvents } from '#contracts/contract.ts'
import type { Lifecycle } from './token.ts'

export type HttpRequest = {
  readonly id: string
  readonly method: Method
  /** The route's template, for metrics. */
  readonly route: string
  readonly params: Readonly<Record<string, string>>
  /** The raw query, without `?`. */
  readonly query: string
  /** Lower-case names; repeated headers joined as node:http does. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * The peer, or what a trusted proxy says of it: an IP address in its one spelling, without a
   * port.
   */
  readonly address: string
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  /**
   * BODY_TOO_LARGE past `bytesMax`; UNSUPPORTED_MEDIA for a content encoding; TOO_MANY_OPEN where
   * the user, or the address, sends too many at once.
   */
  body(bytesMax: number, user?: string): Promise<Uint8Array>
  /**
   * The same as it arrives, for a body that is too long to hold; throws at once for what the head
   * says, later for the rest. Nothing is taken from the socket that is not asked for.
   */
  bodyStream(bytesMax: number, user?: string): AsyncIterable<Uint8Array>
}
export type HttpAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Whose answer it is: streams and large answers are shared out fairly among users. */
  readonly user?: string
  readonly content:
    | { readonly kind: 'none' }
    | { readonly kind: 'json'; readonly text: string }
    | { readonly kind: 'bytes'; readonly bytes: Bytes }
    | { readonly kind: 'events'; readonly events: WireEvents }
}
export type Route = {
  readonly method: Method
  /** With `{name}` for a parameter. */
  readonly path: string
  readonly handle: (request: HttpRequest) => Promise<HttpAnswer>
}
export type HttpSettings = {
  readonly host: string
  readonly port: number
  readonly tls?: {
    readonly cert: string
    readonly key: string
    readonly redirectPort?: number
    /** Where plain HTTP is sent; else to the name asked for, if the certificate has it. */
    readonly redirectHost?: string
  }
  /** Hops to believe in X-Forwarded-For, from the right; 0 believes none. */
  readonly trustProxy: number
  readonly corsOrigins: readonly string[]
  /** Open event streams: in all, of one user, of one address. */
  readonly streams: Share
  /** Bodies that arrive in more than one piece, likewise. */
  readonly bodies: Share
  /** Bytes of answers that are held for their readers, likewise. */
  readonly unreadBytes: Share
  readonly bodyBytesPerSecondMin: number
  /** A connection on which no byte moved for so long is ended, in milliseconds. */
  readonly silenceMs: number
  /** Within this a request's head must have come, in milliseconds. */
  readonly headMs: number
}
/** So many in all, and no more than so many for one user or one address (IPv6: one /64 network). */
export type Share = {
  readonly total: number
  readonly perUser: number
  readonly perAddress: number
}
/**
 * What happened to one request, when it is over. `seconds` of a stream are those until its head was
 * sent.
 */
export type HttpReport = (entry: {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
  readonly id: string
}) => void

export type HttpServer = Lifecycle & {
  /** Serves exactly these from now on. */
  routes(rows: readonly Route[]): void
  /**
   * Resolves with the port when connections are accepted; UNAVAILABLE when the port is taken.
   * `refuse` words every error that the server itself finds.
   */
  listen(
    settings: HttpSettings,
    hooks: {
      readonly report: HttpReport
      readonly refuse: (
        error: unknown,
        request: { readonly id: string; readonly route: string },
      ) => HttpAnswer
    },
  ): Promise<{ readonly port: number }>
  openStreams(): number
}
