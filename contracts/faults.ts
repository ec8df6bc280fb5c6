// Every error of the platform: code → status → sentence. A code never gets another meaning.

/** `fault` replaces each `{name}` in a sentence by a value. */
export const faults = {
  MALFORMED_JSON: [400, 'body: not valid JSON ({why}).'],
  MALFORMED_TEXT: [400, '{field}: not valid UTF-8.'],
  TOO_DEEP: [400, 'body: nested deeper than {max} levels.'],
  INVALID_FIELD: [400, '{field}: {why}.'],
  MALFORMED_REQUEST: [400, 'The request is malformed: {why}.'],
  CURSOR_INVALID: [400, '{field}: {why}.'],
  CODE_INVALID: [
    400,
    'code: the code is wrong or has expired. Register again to receive a new one.',
  ],
  UNAUTHENTICATED: [
    401,
    'The access token is missing, expired or invalid. Exchange your API key at POST ' +
      '/auth/token, or sign in again.',
  ],
  KEY_INVALID: [401, 'The API key is unknown or revoked.'],
  CREDENTIALS_INVALID: [401, 'The e-mail address or the password is wrong.'],
  REFRESH_INVALID: [401, 'refresh_token: unknown, expired or already used. Sign in again.'],
  INSUFFICIENT_CREDITS: [
    402,
    'The balance of {available} credits does not cover the {needed} credits that this run ' +
      'may cost. The run did not start.',
  ],
  CREDITS_EXHAUSTED: [
    402,
    'The credits ran out in the middle of the run: {needed} more were needed, {available} ' +
      'were left. What was done until then is charged.',
  ],
  FORBIDDEN: [403, 'Not allowed: {why}.'],
  ACCOUNT_SUSPENDED: [403, 'This account is suspended.'],
  PASSWORD_WRONG: [403, 'current_password: this is not the password of the account.'],
  EMAIL_UNVERIFIED: [
    403,
    'This e-mail address is not verified yet. Send the six-digit code to POST /auth/verify.',
  ],
  NOT_FOUND: [404, 'There is no such {what}.'],
  ROUTE_NOT_FOUND: [404, 'There is no operation {method} {path}.'],
  METHOD_NOT_ALLOWED: [405, '{method} is not offered at {path}.'],
  CONFLICT: [409, 'Conflict: {why}.'],
  DUPLICATE: [409, 'There is already one with the same {fields}.'],
  STREAM_MOVED: [409, 'The stream {stream} stands at {head}, not at the expected {expect}.'],
  IDEMPOTENCY_MISMATCH: [409, 'idempotency_key: this key was used with another request.'],
  SESSION_BUSY: [409, 'The session has a run in progress.'],
  QUEUE_FULL: [409, 'The queue of this session is full ({max} runs wait).'],
  KEYS_EXHAUSTED: [409, 'There are already {max} active API keys. Revoke one first.'],
  QUOTA_REACHED: [
    409,
    'The organisation has {have} {what}, and may have {max}. Remove some first.',
  ],
  CREDENTIAL_REFUSED: [401, 'This asks for a valid {kind} token.'],
  PLUGIN_REFUSED: [409, '{why}'],
  QUESTION_CLOSED: [409, 'The question is not open: {why}.'],
  LEDGER_MISMATCH: [409, 'The ledger holds another amount under the key {key}.'],
  REQUEST_TIMEOUT: [408, '{what} of the request did not come within {seconds} s.'],
  BODY_TOO_LARGE: [413, 'body: larger than {max} bytes.'],
  DOCUMENT_TOO_LARGE: [413, 'A document of {collection} is larger than {max} bytes.'],
  TARGET_TOO_LONG: [414, 'The request target is longer than {max} characters.'],
  UNSUPPORTED_MEDIA: [415, 'Content-Type: {why}.'],
  EXPECTATION_FAILED: [417, 'Expect: only 100-continue is understood.'],
  RATE_LIMITED: [429, 'Too many requests ({limit}). Wait {seconds} s.'],
  SHEDDING: [429, 'The server is at its capacity. Wait {seconds} s.'],
  TOO_MANY_OPEN: [
    429,
    'Another {what} cannot be opened for {by} now: too many are open. Wait {seconds} s.',
  ],
  HEADERS_TOO_LARGE: [431, 'The head of the request is too large.'],
  LOGIN_THROTTLED: [429, 'Too many failed sign-ins for this account. Wait {seconds} s.'],
  INTERNAL: [500, 'An internal error occurred. Quote the request_id when you report it.'],
  MODEL_FAILED: [502, 'The model provider failed: {why}.'],
  MODEL_REFUSED: [502, 'The model provider refused the request: {why}.'],
  STORAGE_FULL: [
    503,
    'The storage is full. Do not rely on this request: repeat it when there is room, with ' +
      'the same idempotency key where it has one.',
  ],
  CALL_FATAL: [
    500,
    'The process that drove the run ended or hung {times} times in the middle of {call}: ' +
      'the run was given up.',
  ],
  RUN_STUCK: [500, 'The run made no progress in {takes} starts and was given up.'],
  UNAVAILABLE: [503, '{what} is not available: {why}.'],
  STOPPING: [503, 'The server is stopping. Retry.'],
} as const satisfies Record<string, readonly [status: number, sentence: string]>

/** The code by which clients recognise an error. */
export type FaultCode = keyof typeof faults

const retriedStatuses: readonly number[] = [408, 429, 500, 502, 503]
const finalCodes: readonly FaultCode[] = ['MODEL_REFUSED', 'CALL_FATAL', 'RUN_STUCK']
const passingCodes: readonly FaultCode[] = ['SESSION_BUSY', 'QUEUE_FULL']
/** True where the same request may succeed later, after Retry-After or a pause that grows. */
export const isWorthRetrying = (code: FaultCode): boolean =>
  retriedStatuses.includes(faults[code][0])
    ? !finalCodes.includes(code)
    : passingCodes.includes(code)

type Values = Readonly<Record<string, string | number>>

/**
 * An expected error. Compare its `code`, never use `instanceof`: copies of this module may coexist
 * across reloads.
 */
export type Fault = Error & {
  readonly code: FaultCode
  readonly status: number
  readonly values: Values
  readonly retryAfterMs?: number
}

/** Makes a fault. `retryAfterMs` becomes the Retry-After header. */
export function fault(
  code: FaultCode,
  values: Values = {},
  { cause, retryAfterMs }: { cause?: unknown; retryAfterMs?: number } = {},
): Fault {
  const [status, sentence] = faults[code]
  const detail = sentence.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? name))
  const error = new Error(detail, cause === undefined ? undefined : { cause })
  return Object.assign(error, {
    code,
    status,
    values,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** True for a fault of the table. It checks the code, so that copies of the platform agree. */
export const isFault = (error: unknown): error is Fault =>
  error instanceof Error && 'code' in error && 'status' in error && (error as Fault).code in faults
/** True for a fault with this code. */
export const hasCode = (error: unknown, code: FaultCode): error is Fault =>
  isFault(error) && error.code === code
