// The vocabulary of the wire: an operation, a contract (a table of operations), and the types that
// flow from them into handlers.
import { Type as t, type Static, type TSchema, type TString } from 'typebox'
import type { FaultCode } from './faults.ts'

/** Those that an operation may have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** Such as `GET /things/{id}`. */
export type OperationKey = `${Method} /${string}`

/**
 * Who may call: a signed-in user, anybody, or the holder of a credential that a plugin's
 * authenticator of that name checks.
 */
export type Auth = 'user' | 'public' | (string & {})

/**
 * Which rate limit an operation draws from, and whom it counts. The figures are LIMITS_* settings.
 */
export type Limit = { readonly name: string; readonly by: 'user' | 'address' }

/**
 * One row of the wire: everything that a client, a validator, a handler's type and the OpenAPI
 * document need to know.
 */
export type Operation = {
  /** A few words; the operation's title on the page. */
  readonly summary: string
  /** A sentence or more, for the page. */
  readonly description?: string
  /** Default `user`. */
  readonly auth?: Auth
  /** By the names in its path. */
  readonly params?: Readonly<Record<string, TSchema>>
  /** An object's schema; other names are refused. */
  readonly query?: TSchema
  /** By lower-case name; each may be left out. */
  readonly headers?: Readonly<Record<string, TSchema>>
  /** Of the JSON body. */
  readonly body?: TSchema
  /** A body may be left out; the handler then sees undefined. */
  readonly bodyOptional?: boolean
  /** Bytes; 1 MiB unless said otherwise. */
  readonly bodyMaxBytes?: number
  /**
   * The body's field that holds what is too long to be held, as Base64 (`contentEncoding: 'base64'`
   * in its schema) or as text: it is made bytes as it arrives, and the handler gets a
   * `StreamedBody`.
   */
  readonly streamed?: string
  /** A JSON schema, an event stream, raw bytes of a media type, or nothing (204). */
  readonly reply: TSchema | 'sse' | 'none' | { readonly bytes: string }
  /** Of success: 200, or 204 where there is no reply, unless said otherwise. */
  readonly status?: number
  /** Answers 304 to an If-None-Match that names its ETag. */
  readonly revalidated?: true
  /** Served by every process; a worker serves nothing else. */
  readonly everywhere?: true
  /** A rate of the plugin's `limits`: RATE_LIMITED, with Retry-After, past it. */
  readonly limit?: Limit
  /** Faults beyond those that follow from the row itself (see `statusesOf`). */
  readonly faults?: readonly FaultCode[]
}
/** `METHOD /path/{name}` → its row. */
export type Contract = Readonly<Record<OperationKey, Operation>>

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never
type Named<K> = K extends string
  ? [ParamNames<K>] extends [never]
    ? { readonly params?: never }
    : { readonly params: Readonly<Record<ParamNames<K>, TSchema>> }
  : never

/**
 * Declares a table of operations. A path's `{name}` without a schema in `params` does not compile.
 */
export const contract = <const C extends { readonly [K in keyof C]: Operation & Named<K> }>(
  rows: C & Contract,
): C => rows

/**
 * An identifier of something that an organisation owns. Tenancy tests are generated from these
 * marks.
 */
export const ref = <const K extends string>(kind: K): TString =>
  t.String({ format: 'uuid', 'x-ref': kind })

/**
 * A field that a client may leave out and a handler always has: the validator fills in its
 * `default`.
 */
export const filled = <S extends TSchema>(schema: S): S => t.Optional(schema) as unknown as S

/** The one shape of every list. `next_cursor` is absent on the last page. */
export const page = <T extends TSchema>(item: T) =>
  t.Object({ items: t.Array(item), next_cursor: t.Optional(t.String()) })

/** The query of every list. */
export const Paging = t.Object({
  limit: t.Optional(
    t.Integer({ minimum: 1, maximum: 200, default: 50, description: 'Items per page.' }),
  ),
  cursor: t.Optional(
    t.String({ minLength: 1, maxLength: 1024, description: '`next_cursor` of the previous page.' }),
  ),
})

/** A moment on the wire. */
export const Timestamp = t.String({ format: 'date-time', description: 'ISO-8601, UTC.' })

/** The signed-in party. Identity comes from the credential alone, never from a request field. */
export type Caller = { readonly userId: string; readonly orgId: string; readonly role: string }

/** Raw bytes of a reply or a download, with what the client needs to name them. */
export type Bytes = {
  readonly stream: AsyncIterable<Uint8Array> | Uint8Array
  readonly mime: string
  readonly filename?: string
}

/** A body of which one field is read as a stream. */
export type StreamedBody<Fields> = {
  /**
   * The decoded bytes; read once, at the reader's pace. What is wrong with the body, before or
   * behind the field, is thrown here: content that has ended belongs to a whole and checked body.
   */
  readonly content: AsyncIterable<Uint8Array>
  /** The other fields, known when the content has ended. */
  fields(): Fields
}

type Of<S> = S extends TSchema ? Static<S> : undefined
type OfFields<F> = { [K in keyof F]: F[K] extends TSchema ? Static<F[K]> : never }
type Field<O, K extends string> = O extends { readonly [P in K]: infer V } ? V : undefined

type BodyOf<O> = O extends { readonly streamed: infer K extends string }
  ? StreamedBody<Omit<Of<Field<O, 'body'>>, K>>
  : O extends { readonly bodyOptional: true }
    ? Of<Field<O, 'body'>> | undefined
    : Of<Field<O, 'body'>>

/** What a handler receives from the wire, typed by its row. */
export type Call<O> = {
  /** Who calls; undefined where the row is `public`. */
  caller: Field<O, 'auth'> extends undefined | 'user' ? Caller : Caller | undefined
  /** Checked, as are query, headers and body. */
  params: Field<O, 'params'> extends infer P ? (P extends object ? OfFields<P> : {}) : {}
  query: Of<Field<O, 'query'>>
  /** Lower-case names; all that came, those of the row checked. */
  headers: { readonly [name: string]: string | undefined }
  body: BodyOf<O>
  /** The SSE cursor: `Last-Event-ID`, else `?after`, else 0. */
  after: number
  /** The peer's address, for limits and audit; never an identity. */
  address: string
  /** Aborts when the client goes away. */
  signal: AbortSignal
}

/** One event of a stream as it goes over the wire. */
export type WireEvent = { readonly seq: number; readonly type: string; readonly data: unknown }

/** A stream as it goes on, or, when it has ended already, all that is left of it. */
export type WireEvents = AsyncIterable<readonly WireEvent[]> | readonly WireEvent[]

/** What a handler answers, typed by its row. */
export type Answer<O> =
  Field<O, 'reply'> extends infer R
    ? R extends 'sse'
      ? WireEvents
      : R extends 'none'
        ? void
        : R extends { readonly bytes: string }
          ? Bytes | Reply<Bytes>
          : R extends TSchema
            ? Static<R> | Reply<Static<R>>
            : never
    : never

/** An answer with another status or with headers than the row's own. */
export type Reply<T> = {
  readonly [replyMark]: true
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly value: T
}
const replyMark: unique symbol = Symbol.for('agent-platform.reply') as never
/** Answers the value with another status or with headers beside the row's own. */
export const reply = <T>(
  value: T,
  { status, headers = {} }: { status?: number; headers?: Record<string, string> },
): Reply<T> => ({ [replyMark]: true, status, headers, value })
/** Was it made by `reply`? */
export const isReply = (value: unknown): value is Reply<unknown> =>
  typeof value === 'object' && value !== null && replyMark in value

/** Every row of the contract, each handler typed by its row and by the deps that it asks for. */
export type Routes<C, Deps> = {
  [K in keyof C]: (call: Deps & Call<C[K]>) => Answer<C[K]> | Promise<Answer<C[K]>>
}
