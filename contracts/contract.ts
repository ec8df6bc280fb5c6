// The vocabulary of the wire. An operation is one row, a contract is a table of operations, and the
// types of handlers follow from the rows.
import { Type as t, type Static, type TSchema, type TString } from 'typebox'
import type { FaultCode } from './faults.ts'

/** HTTP methods that an operation may have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** Such as `GET /things/{id}`. */
export type OperationKey = `${Method} /${string}`

/**
 * Who may call: a signed-in user, anybody, or the holder of a credential. A plugin's authenticator
 * of that name checks the credential.
 */
export type Auth = 'user' | 'public' | (string & {})

/** The rate limit of an operation, and whom it counts. LIMITS_* settings hold its numbers. */
export type Limit = { readonly name: string; readonly by: 'user' | 'address' }

/**
 * One operation. Clients, validators, handler types and the OpenAPI document all follow from it.
 */
export type Operation = {
  /**
   * Its name in generated clients: `getThing`. Default: made of method and path.
   */
  readonly id?: string
  /** Its chapter in the documentation. Default: the plugin's name. */
  readonly tag?: string
  /** A few words: the operation's title in the documentation. */
  readonly summary: string
  /** A sentence or more for the documentation. */
  readonly description?: string
  /** Default: `user`. */
  readonly auth?: Auth
  /** Schemas of the names in the path. */
  readonly params?: Readonly<Record<string, TSchema>>
  /** An object's schema. Undeclared names are refused. */
  readonly query?: TSchema
  /** Schemas by lower-case name. Each header is optional. */
  readonly headers?: Readonly<Record<string, TSchema>>
  /** The schema of the JSON body. */
  readonly body?: TSchema
  /** The client may send no body; the handler then gets undefined. */
  readonly bodyOptional?: boolean
  /** Bytes of the body; default 1 MiB. */
  readonly bodyMaxBytes?: number
  /**
   * The field of the body that is too long for memory: Base64 (`contentEncoding: 'base64'` in its
   * schema) or text. It is decoded to bytes as it arrives, and the handler gets a `StreamedBody`.
   */
  readonly streamed?: string
  /** A JSON schema, an event stream, raw bytes of a media type, or nothing (204). */
  readonly reply: TSchema | 'sse' | 'none' | { readonly bytes: string }
  /** The status of success; default 200, or 204 where there is no reply. */
  readonly status?: number
  /** Further statuses that come with the same body. */
  readonly otherStatuses?: readonly number[]
  /** Answers 304 to an If-None-Match that names its ETag. */
  readonly revalidated?: true
  /** Every process serves it. A worker process serves only such operations. */
  readonly everywhere?: true
  /** One of the plugin's `limits`. Beyond it: RATE_LIMITED with Retry-After. */
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

/** The id of something that an organisation owns. Tenancy tests are generated from these marks. */
export const ref = <const K extends string>(kind: K): TString =>
  t.String({ format: 'uuid', 'x-ref': kind })

/**
 * A field that a client may omit and a handler always gets: the validator fills in its `default`.
 */
export const filled = <S extends TSchema>(schema: S): S => t.Optional(schema) as unknown as S

/** Of a named schema: itself as it was named. A copy with another description keeps it. */
export const asNamed: unique symbol = Symbol.for('agent-platform.as-named') as never
/** Gives a schema its name in the API document, and so in generated clients. */
export function named<S extends TSchema>(name: string, schema: S): S {
  const whole = { ...schema, 'x-name': name }
  return Object.assign(whole, { [asNamed]: whole }) as S
}

/** Puts a table of operations into a chapter of the documentation. */
export const tagged = <C extends Contract>(tag: string, rows: C): C =>
  Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, { tag, ...row }])) as C

/** The shape of every list. `next_cursor` is absent on the last page. */
export const page = <T extends TSchema>(item: T) =>
  t.Object(
    {
      items: t.Array(item),
      next_cursor: t.Optional(
        t.String({ description: '`cursor` of the next page; absent on the last one.' }),
      ),
    },
    'x-name' in item ? { 'x-name': `Page_${item['x-name']}` } : {},
  )

/** The query parameters of every list. */
export const Paging = t.Object({
  limit: t.Optional(
    t.Integer({ minimum: 1, maximum: 200, default: 50, description: 'Items per page.' }),
  ),
  cursor: t.Optional(
    t.String({ minLength: 1, maxLength: 1024, description: '`next_cursor` of the previous page.' }),
  ),
})

/** A point in time. */
export const Timestamp = t.String({
  format: 'date-time',
  example: '2026-01-31T09:30:00.000Z',
  description: 'ISO-8601, UTC.',
})

/**
 * The signed-in party. Identity comes from the credential only, never from a field of the request.
 */
export type Caller = { readonly userId: string; readonly orgId: string; readonly role: string }

/** Raw bytes of a reply or a download, with name and type for the client. */
export type Bytes = {
  readonly stream: AsyncIterable<Uint8Array> | Uint8Array
  readonly mime: string
  readonly filename?: string
}

/** A body with one field that is read as a stream. */
export type StreamedBody<Fields> = {
  /**
   * The decoded bytes. Read them once; they come at the reader's pace. An error anywhere in the
   * body is thrown here. When the bytes have ended, the whole body was checked.
   */
  readonly content: AsyncIterable<Uint8Array>
  /** The other fields, available when the content has ended. */
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

/** The request as a handler gets it, typed by its row. */
export type Call<O> = {
  /** The caller; undefined where the row is `public`. */
  caller: Field<O, 'auth'> extends undefined | 'user' ? Caller : Caller | undefined
  /** Checked against the row, as are query, headers and body. */
  params: Field<O, 'params'> extends infer P ? (P extends object ? OfFields<P> : {}) : {}
  query: Of<Field<O, 'query'>>
  /** All headers of the request by lower-case name. Those of the row are checked. */
  headers: { readonly [name: string]: string | undefined }
  body: BodyOf<O>
  /** The SSE cursor: `Last-Event-ID`, else `?after`, else 0. */
  after: number
  /** The client's address, for limits and audit. It is never an identity. */
  address: string
  /** Aborts when the client goes away. */
  signal: AbortSignal
}

/** One event of a stream, as clients get it. */
export type WireEvent = { readonly seq: number; readonly type: string; readonly data: unknown }

/** A stream that goes on, or all events of a stream that has ended. */
export type WireEvents = AsyncIterable<readonly WireEvent[]> | readonly WireEvent[]

/** The answer of a handler, typed by its row. */
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

/** An answer with a status or headers of its own. */
export type Reply<T> = {
  readonly [replyMark]: true
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly value: T
}
const replyMark: unique symbol = Symbol.for('agent-platform.reply') as never
/** Answers the value with another status, or with headers beside those of the row. */
export const reply = <T>(
  value: T,
  { status, headers = {} }: { status?: number; headers?: Record<string, string> },
): Reply<T> => ({ [replyMark]: true, status, headers, value })
/** True for values that `reply` made. */
export const isReply = (value: unknown): value is Reply<unknown> =>
  typeof value === 'object' && value !== null && replyMark in value

/** A handler for every row, typed by the row and by the deps that the handler uses. */
export type Routes<C, Deps> = {
  [K in keyof C]: (call: Deps & Call<C[K]>) => Answer<C[K]> | Promise<Answer<C[K]>>
}
