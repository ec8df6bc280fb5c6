// Blobs in any store that speaks S3. An upload is kept in a local file until its hash is known, and
// then goes up in one request under its final name. So nothing half-done stays in the store, no
// right to copy is needed, and a try can be repeated. The hash that names the blob also signs the
// request, so a store that checks signatures refuses damaged bytes.
import { join } from 'node:path'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Blob, Blobs, BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import { abortable } from '../_shared/abortable.ts'
import { checkedOrganisation, checkedRange, isAddress, isHash } from '../_shared/blob-names.ts'
import { makeFolder } from '../_shared/atomic-file.ts'
import { closableWork } from '../_shared/closable.ts'
import { linked, toFault, trying, serviceName, type Store } from './s3/calls.ts'
import { spooled } from './s3/spool.ts'
import { download, isAbsent } from './s3/download.ts'
import { s3Settings } from './s3/settings.ts'
import { upload } from './s3/upload.ts'

/**
 * The most that S3 takes in one request
 * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html).
 */
const bytesMaxOfStore = 5 * 2 ** 30
/** The most that S3 lists in one answer. */
const listedMax = 1000
const connectMsMax = 5000
const silenceMsMax = 30_000

type World = {
  readonly store: Store
  readonly prefix: string
  readonly folder: string
  readonly clock: Clock
  readonly log: Log
}
export async function s3Blobs({ store, prefix, folder, clock, log }: World): Promise<BlobsEngine> {
  const { sdk, client, bucket: Bucket } = store
  const { check, track, signal: closing, close } = closableWork(serviceName)
  const during = async <T>(
    signal: AbortSignal | undefined,
    work: (tries: { clock: Clock; log: Log; signal: AbortSignal }) => Promise<T>,
  ): Promise<T> => {
    const link = linked([signal, closing])
    try {
      return await track(work({ clock, log, signal: link.signal }))
    } finally {
      link.release()
    }
  }
  const head = (Key: string, signal?: AbortSignal): Promise<number | undefined> =>
    during(signal, tries =>
      trying(
        async abortSignal =>
          (await client.send(new sdk.HeadObjectCommand({ Bucket, Key }), { abortSignal }))
            .ContentLength ?? 0,
        tries,
        isAbsent,
      ).catch((error: unknown) => {
        if (isAbsent(error)) return undefined
        throw error
      }),
    )

  const put = async (
    home: string,
    content: AsyncIterable<Uint8Array>,
    { bytesMax, signal }: { bytesMax: number; signal: AbortSignal | undefined },
  ): Promise<Blob> => {
    const spool = await spooled(abortable(content, [signal, closing]), {
      folder,
      clock,
      bytesMax: Math.min(bytesMax, bytesMaxOfStore),
    })
    try {
      const { hash, bytes } = spool
      const key = home + hash
      if ((await head(key, signal)) !== bytes)
        await during(signal, tries =>
          trying(abortSignal => upload(store, key, spool, abortSignal), tries),
        )
      return { hash, bytes }
    } finally {
      await spool.close()
    }
  }

  const within = (orgId: string): Blobs => {
    check()
    const home = `${prefix}${checkedOrganisation(orgId)}/`
    return {
      async put(content, { bytesMax = Infinity, signal } = {}) {
        check()
        return track(put(home, content, { bytesMax, signal }))
      },
      async *get(hash, { signal, ...asked } = {}) {
        check()
        signal?.throwIfAborted()
        const range = checkedRange(asked)
        if (
          !isHash(hash) ||
          (range.start >= range.end && (await head(home + hash, signal)) === undefined)
        )
          throw fault('NOT_FOUND', { what: 'blob' })
        if (range.start >= range.end) return
        const link = linked([signal, closing])
        try {
          yield* download({ store, clock, log }, home + hash, { hash, ...range }, link.signal)
        } finally {
          link.release()
        }
      },
      async stat(hash) {
        check()
        const bytes = isHash(hash) ? await head(home + hash) : undefined
        return bytes === undefined ? undefined : { hash, bytes }
      },
      /**
       * S3 does not say whether a deleted object existed, so the adapter asks first. Two removals
       * at once may both answer true.
       */
      async remove(hash) {
        check()
        if (!isHash(hash) || (await head(home + hash)) === undefined) return false
        await during(undefined, tries =>
          trying(
            abortSignal =>
              client.send(new sdk.DeleteObjectCommand({ Bucket, Key: home + hash }), {
                abortSignal,
              }),
            tries,
          ),
        )
        return true
      },
    }
  }
  const ping = async () =>
    void (await client
      .send(new sdk.HeadBucketCommand({ Bucket }), { abortSignal: closing })
      .catch((error: unknown) => {
        throw toFault(error)
      }))
  await makeFolder(folder)
  await ping()
  return {
    within,
    async addresses({ after = '', limit }) {
      check()
      const found: string[] = []
      for (let StartAfter = prefix + after, more = true; more && found.length < limit; ) {
        const from = StartAfter
        const { Contents = [], IsTruncated = false } = await during(undefined, tries =>
          trying(
            abortSignal =>
              client.send(
                new sdk.ListObjectsV2Command({
                  Bucket,
                  Prefix: prefix,
                  ...(from === '' ? {} : { StartAfter: from }),
                  MaxKeys: Math.min(limit, listedMax),
                }),
                { abortSignal },
              ),
            tries,
          ),
        )
        // A bucket may hold what is not ours.
        found.push(...Contents.map(({ Key = '' }) => Key.slice(prefix.length)).filter(isAddress))
        StartAfter = Contents.at(-1)?.Key ?? StartAfter
        more = IsTruncated && Contents.length > 0
      }
      return found.slice(0, limit)
    },
    async ping() {
      check()
      await ping()
    },
    close: () => close(() => client.destroy()),
  }
}

const options = {
  endpoint: 'http: or https: address of a store that is not AWS; default AWS by its region.',
  region: 'The region of the bucket; default us-east-1.',
  pathStyle:
    "true: the bucket is part of the path and not of the host's name, as many stores want " +
    'it; default false.',
} as const

export default defineAdapter<BlobsEngine>({
  port: 'blobs',
  scheme: 's3',
  options,
  open: async ({ url, dataDir, clock, log, secret }) => {
    const { bucket, prefix, client: settings } = s3Settings(url, secret)
    const sdk = await import('@aws-sdk/client-s3')
    const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }
    // One try: whether another helps is decided here, with a body that can be read again.
    const client = new sdk.S3Client({
      ...settings,
      maxAttempts: 1,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      logger: silent,
      requestHandler: {
        connectionTimeout: connectMsMax,
        socketTimeout: silenceMsMax,
        logger: silent,
      },
    })
    try {
      return await s3Blobs({
        store: { sdk, client, bucket },
        prefix,
        folder: join(dataDir, 'spool'),
        clock,
        log,
      })
    } catch (error) {
      client.destroy()
      throw error
    }
  },
})
