// Reads a blob, in as many requests as it takes.
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { abortable } from '../../_shared/abortable.ts'
import { pauseAfter, statusOf, serviceName, type Store } from './calls.ts'

type World = { readonly store: Store; readonly clock: Clock; readonly log: Log }
type Wanted = { readonly hash: string; readonly start: number; readonly end: number }

export const isAbsent = (error: unknown) =>
  statusOf(error) === 404 && (error as Error).name !== 'NoSuchBucket'
const isBeyond = (error: unknown) => statusOf(error) === 416

/**
 * From where it broke off where the connection breaks; the whole is compared with its address at
 * the end.
 */
export async function* download(
  { store: { sdk, client, bucket: Bucket }, clock, log }: World,
  Key: string,
  { hash, start, end }: Wanted,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const digest = start === 0 && end === Infinity ? createHash('sha256') : undefined
  for (let at = start, tried = 1; ; tried++) {
    let body: Readable | undefined
    try {
      const Range =
        at === 0 && end === Infinity ? undefined : `bytes=${at}-${end === Infinity ? '' : end - 1}`
      const answer = await client.send(
        new sdk.GetObjectCommand({ Bucket, Key, ...(Range === undefined ? {} : { Range }) }),
        { abortSignal: signal },
      )
      if (Range !== undefined && answer.$metadata.httpStatusCode !== 206)
        throw fault('UNAVAILABLE', { what: serviceName, why: 'it does not read ranges' })
      body = answer.Body as Readable
      const stop = at + (answer.ContentLength ?? 0)
      for await (const part of abortable(body as AsyncIterable<Uint8Array>, [signal])) {
        at += part.length
        tried = 0
        digest?.update(part)
        yield part
      }
      if (at !== stop) throw new Error('it ended too soon')
      if (digest && digest.digest('hex') !== hash)
        throw fault('UNAVAILABLE', {
          what: serviceName,
          why: 'what it holds is not what its address says',
        })
      return
    } catch (error) {
      if (isBeyond(error)) return
      if (isAbsent(error)) throw fault('NOT_FOUND', { what: 'blob' })
      await pauseAfter(error, tried, { clock, log, signal })
    } finally {
      body?.destroy()
    }
  }
}
