// The HTTP server: it takes routes and passes calls to the kernel's dispatcher. Plugins never see
// this port.
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
  /** Lower-case names. Repeated headers are joined as node:http joins them. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * The client's IP address in its one spelling, without a port: the peer's address, or what a
   * trusted proxy reports.
   */
  readonly address: string
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  /**
   * Reads the body. BODY_TOO_LARGE past `bytesMax`, UNSUPPORTED_MEDIA for a content encoding.
   * TOO_MANY_OPEN when the user or the address sends too many bodies at once.
   */
  body(bytesMax: number, user?: string): Promise<Uint8Array>
  /**
   * Streams a body that is too long for memory, with the errors of `body`. Errors in the head are
   * thrown at once, others while the body is read. The server takes no more from the socket than
   * the reader asks for.
   */
  bodyStream(bytesMax: number, user?: string): AsyncIterable<Uint8Array>
}
export type HttpAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /**
   * The user who gets the answer. Event streams and large answers are shared fairly among users.
   */
  readonly user?: string
  readonly content:
    | { readonly kind: 'none' }
    | { readonly kind: 'json'; readonly text: string }
    | { readonly kind: 'bytes'; readonly bytes: Bytes }
    | { readonly kind: 'events'; readonly events: WireEvents }
}
export type Route = {
  readonly method: Method
  /** The path; `{name}` is a parameter. */
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
    /**
     * The host that plain HTTP is redirected to. By default the requested host, if the certificate
     * names it.
     */
    readonly redirectHost?: string
  }
  /** How many hops of X-Forwarded-For to trust, from the right; 0 trusts none. */
  readonly trustProxy: number
  readonly corsOrigins: readonly string[]
  /** Open event streams: bounds in all, for one user, for one address. */
  readonly streams: Share
  /** Request bodies that arrive in more than one piece: bounds as for `streams`. */
  readonly bodies: Share
  /** Bytes of answers that wait for their readers: bounds as for `streams`. */
  readonly unreadBytes: Share
  readonly bodyBytesPerSecondMin: number
  /** Milliseconds after which a connection without any traffic is closed. */
  readonly silenceMs: number
  /** Milliseconds in which the head of a request must arrive. */
  readonly headMs: number
}
/** Bounds in all, for one user, and for one address (IPv6: one /64 network). */
export type Share = {
  readonly total: number
  readonly perUser: number
  readonly perAddress: number
}
/** Reports one request after its end. `seconds` of an event stream end when its head was sent. */
export type HttpReport = (entry: {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
  readonly id: string
}) => void

export type HttpServer = Lifecycle & {
  /** Replaces the routes that are served. */
  routes(rows: readonly Route[]): void
  /**
   * Resolves with the port number when the server accepts connections. UNAVAILABLE when the port is
   * taken. `refuse` makes the answer for every error that the server itself finds.
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
