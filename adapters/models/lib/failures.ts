// Turns a provider's error into a fault with fixed words. A provider's own sentences may quote the
// prompt, a key or an address.
import { fault, isFault, type Fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { retryAfterOf } from './pacing/rate-limits.ts'

const whyMax = 200

/**
 * The fields that the libraries' errors share. `status` is absent where the error came in the
 * middle of a stream.
 */
type ProviderError = {
  readonly status?: unknown
  readonly headers?: unknown
  readonly error?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  readonly code?: unknown
}
type ErrorDetails = {
  readonly status: number | undefined
  readonly word: string | undefined
  readonly message: string
}

/**
 * The provider's code for the error, if it is one plain word. A text that could be a key is left
 * out.
 */
function wordOf(...values: readonly unknown[]): string | undefined {
  return values.find(
    (value): value is string =>
      typeof value === 'string' &&
      /^[A-Za-z][A-Za-z0-9_.]{0,47}$/.test(value) &&
      !/\d{4}|^(?:sk|pk|key|bearer)[_.]/i.test(value),
  )
}
const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/**
 * Anthropic wraps its error once more than OpenAI: https://platform.claude.com/docs/en/api/errors,
 * https://platform.openai.com/docs/guides/error-codes.
 */
function detailsOf(error: ProviderError): ErrorDetails {
  const outer = objectOf(error.error)
  const inner = 'error' in outer ? objectOf(outer['error']) : outer
  const { code, type, message } = inner
  // vLLM and llama.cpp give the status as `code`, also in the middle of a stream.
  const numbers = [error.status, code, Number(code)].filter(
    (value): value is number =>
      typeof value === 'number' && Number.isInteger(value) && value >= 300 && value <= 599,
  )
  return {
    status: numbers[0],
    word: wordOf(code, type),
    message:
      typeof message === 'string'
        ? message
        : typeof error.message === 'string'
          ? error.message
          : '',
  }
}

const tooLong = ({ status, word = '', message }: ErrorDetails): boolean =>
  status === 413 ||
  /context_(?:length|size)|request_too_large|string_above_max_length/.test(word) ||
  (status === 400 &&
    /context (?:length|window|size)|prompt is too long|too many tokens|maximum context/i.test(
      message,
    ))

/**
 * Statuses with which the same request would be refused again, and why. Every other status below
 * 500 that is not in `passing` counts, too.
 */
const refusals: Readonly<Record<number, string>> = {
  400: 'the request is not valid there',
  401: 'the key is missing or wrong',
  402: 'the account there has no credit left',
  403: 'the key does not allow this',
  404: 'there is no such model or address there',
  422: 'the request is not valid there',
}
const passing: Readonly<Record<number, string>> = {
  408: 'it took too long',
  409: 'it was busy with the same',
  425: 'it was too early',
  429: 'its rate limit is reached',
  529: 'it is overloaded',
}
/** Errors that come without a status, in the middle of a stream. */
const refusingWords: ReadonlySet<string> = new Set([
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'not_found_error',
  'billing_error',
  'invalid_prompt',
  'BadRequestError',
])

/** The code of a network error, however deep the library has wrapped it. */
function networkCodeOf(error: unknown, depth = 0): string | undefined {
  const { code, cause } = objectOf(error) as ProviderError
  if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return code
  return depth < 5 && cause !== undefined ? networkCodeOf(cause, depth + 1) : undefined
}

const madeOf = (
  code: 'MODEL_FAILED' | 'MODEL_REFUSED',
  why: string,
  retryAfterMs?: number,
): Fault =>
  fault(code, { why: why.slice(0, whyMax) }, retryAfterMs === undefined ? {} : { retryAfterMs })

/**
 * MODEL_REFUSED for what would fail again, MODEL_FAILED for everything else. The error itself is
 * dropped: it holds the provider's words.
 */
export function failureOf(
  error: unknown,
  { who, clock }: { who: string; clock: Pick<Clock, 'now'> },
): Fault {
  if (isFault(error)) return error
  const given = objectOf(error) as ProviderError
  const answered = given.status !== undefined || given.error !== undefined
  if (!answered) {
    if (error instanceof SyntaxError || (error instanceof TypeError && error.cause === undefined))
      return madeOf('MODEL_FAILED', `${who} sent something that cannot be read`)
    const code = networkCodeOf(error)
    return madeOf(
      'MODEL_FAILED',
      `the connection to ${who} failed${code === undefined ? '' : ` (${code})`}`,
    )
  }
  const details = detailsOf(given)
  const { status, word } = details
  const marked = status === undefined || word === undefined ? word : `(${word})`
  const said = `${who} answered ${[status, marked].filter(Boolean).join(' ') || 'an error'}`
  if (tooLong(details))
    return madeOf('MODEL_REFUSED', `${said}: the content is too long for the model`)
  // The only 429 that waiting does not end: https://platform.openai.com/docs/guides/error-codes.
  if (word === 'insufficient_quota')
    return madeOf('MODEL_REFUSED', `${said}: the account there has no credit left`)
  const refused =
    status === undefined ? refusingWords.has(word ?? '') : status < 500 && !(status in passing)
  const other = status! < 400 ? 'redirects are not followed' : 'the request is not taken there'
  if (refused) return madeOf('MODEL_REFUSED', `${said}: ${refusals[status ?? 400] ?? other}`)
  const retryAfterMs =
    given.headers instanceof Headers ? retryAfterOf(given.headers, clock) : undefined
  const why = status === undefined ? undefined : passing[status]
  return madeOf('MODEL_FAILED', why === undefined ? said : `${said}: ${why}`, retryAfterMs)
}
