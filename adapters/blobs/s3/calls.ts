// Calls to a store that speaks S3 (https://docs.aws.amazon.com/AmazonS3/latest/API/): tried again
// after a pause where that can help, and told in the platform's words. Neither keys nor signed
// headers reach an error.
import type { S3Client } from '@aws-sdk/client-s3'
import { fault, type Fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'

export const serviceName = 'The blob store'
const triesMax = 4
const pauseMs = 250
const pauseMsMax = 4000
/** Not answered, or not now. */
const passing = new Set([
  'RequestTimeout',
  'SlowDown',
  'InternalError',
  'ServiceUnavailable',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
  'TimeoutError',
  'OperationAborted',
  'ConditionalRequestConflict',
])
const full = new Set(['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage'])

/** What is read of an error of the SDK's; its cause, response and headers are left alone. */
type Failure = {
  readonly name?: string
  readonly code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}
const wordOf = ({ name, code }: Failure) =>
  [name, code].find(
    word => word !== undefined && word !== 'Error' && /^[A-Za-z0-9_.]{1,64}$/.test(word),
  ) ?? 'unknown'
export const statusOf = (error: unknown): number | undefined =>
  (error as Failure | undefined)?.$metadata?.httpStatusCode
const isFault = (error: unknown): error is Fault =>
  error instanceof Error && 'status' in error && 'values' in error

const isPassing = (error: unknown): boolean => {
  if (isFault(error)) return false
  const status = statusOf(error)
  const { name = '' } = error as Failure
  if (name === 'CredentialsProviderError') return false
  return status === undefined || status >= 500 || status === 429 || passing.has(name)
}

export function toFault(error: unknown): unknown {
  if (isFault(error)) return error
  const failure = error as Failure
  const status = statusOf(error)
  const word = wordOf(failure)
  if (status === 507 || full.has(word)) return fault('STORAGE_FULL')
  const why =
    failure.name === 'CredentialsProviderError'
      ? 'there are no credentials; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY give them'
      : failure.name === 'NoSuchBucket' || (status === 404 && word === 'NotFound')
        ? 'there is no such bucket'
        : status === undefined || status < 300
          ? `the connection failed (${failure.code ?? word})`
          : status === 401 || status === 403
            ? `it refuses these credentials, or what they ask for (${word})`
            : `it refused a call (${status} ${word})`
  return fault('UNAVAILABLE', { what: serviceName, why }, { retryAfterMs: 1000 })
}

/**
 * One that aborts with whichever aborts first. Let go of when its work has ended, for a signal made
 * of others lives as long as they.
 */
export function linked(signals: readonly (AbortSignal | undefined)[]): {
  readonly signal: AbortSignal
  release(): void
} {
  const controller = new AbortController()
  const listeners = signals
    .filter(signal => signal !== undefined)
    .map(signal => ({ signal, heard: () => controller.abort(signal.reason) }))
  for (const { signal, heard } of listeners) {
    if (signal.aborted) heard()
    else signal.addEventListener('abort', heard, { once: true })
  }
  return {
    signal: controller.signal,
    release: () =>
      listeners.forEach(({ signal, heard }) => signal.removeEventListener('abort', heard)),
  }
}

export type Tries = { readonly clock: Clock; readonly log: Log; readonly signal: AbortSignal }
/** Waits before another try, or throws what there is to say. `tried` counts from 1. */
export async function pauseAfter(
  error: unknown,
  tried: number,
  { clock, log, signal }: Tries,
): Promise<void> {
  signal.throwIfAborted()
  if (tried >= triesMax || !isPassing(error)) throw toFault(error)
  log('debug', 'blobs.retry', { tried, error: (toFault(error) as Error).message })
  await clock.sleep(
    Math.min(pauseMsMax, pauseMs * 2 ** (tried - 1)) * (0.5 + clock.random() / 2),
    signal,
  )
}
/**
 * Throws the signal's own reason, or a fault; an error that `expected` knows is thrown as it is.
 */
export async function trying<T>(
  once: (signal: AbortSignal) => Promise<T>,
  tries: Tries,
  expected: (error: unknown) => boolean = () => false,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      tries.signal.throwIfAborted()
      return await once(tries.signal)
    } catch (error) {
      if (expected(error)) throw error
      await pauseAfter(error, tried, tries)
    }
  }
}

export type Sdk = typeof import('@aws-sdk/client-s3')
export type Store = { readonly sdk: Sdk; readonly client: S3Client; readonly bucket: string }
