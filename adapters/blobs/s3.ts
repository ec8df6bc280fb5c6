// Blobs in any store that speaks S3. What is put lies in a local file until its hash is known and
// then goes up in one request: under its last name at once, or not at all. So nothing half-done can
// be left in the store,
// no right to copy is needed, a try can be made again, and the hash that names the blob also signs
// the request, so that a store that checks signatures refuses a byte that differs.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log, type AdapterContext } from '#ports/adapter.ts'
import type { Blob, Blobs, BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import { abortable } from '../_shared/abortable.ts'
import { checkedOrganisation, checkedRange, isAddress, isHash } from '../_shared/blob-names.ts'
import { makeFolder } from '../_shared/atomic-file.ts'
import { closableWork } from '../_shared/closable.ts'
import { linked, pauseAfter, statusOf, toFault, trying, WHAT, type Store } from './s3/calls.ts'
import { spooled, type Spooled } from './s3/spool.ts'

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
type Range = { readonly start: number; readonly end: number }

const isAbsent = (error: unknown) =>
  statusOf(error) === 404 && (error as Error).name !== 'NoSuchBucket'
const isBeyond = (error: unknown) => statusOf(error) === 416

export async function s3Blobs({
  store: { sdk, client, bucket: Bucket },
  prefix,
  folder,
  clock,
  log,
}: World): Promise<BlobsEngine> {
  const { check, track, signal: closing, close } = closableWork(WHAT)
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

  const send = async (
    Key: string,
    { hash, bytes, read: readSpooled }: Spooled,
    abortSignal: AbortSignal,
  ): Promise<void> => {
    const body = Readable.from(readSpooled(), { objectMode: false })
    // The send tells what failed; what fails after it has given up is nobody's.
    body.on('error', () => undefined)
    const command = new sdk.PutObjectCommand({
      Bucket,
      Key,
      Body: body,
      ContentLength: bytes,
      ContentType: 'application/octet-stream',
      ChecksumSHA256: Buffer.from(hash, 'hex').toString('base64'),
    })
    // The hash of what is sent is known: signed with it, the request is worth nothing for other
    // bytes (AWS Signature Version 4).
    command.middlewareStack.add(
      next => args => {
        ;(args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] =
          hash
        return next(args)
      },
      { step: 'build', name: 'payloadHash' },
    )
    try {
      await client.send(command, { abortSignal })
    } finally {
      body.destroy()
    }
  }
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
        await during(signal, tries => trying(abortSignal => send(key, spool, abortSignal), tries))
      return { hash, bytes }
    } finally {
      await spool.close()
    }
  }

  /**
   * From where it broke off where the connection breaks; the whole is compared with its address at
   * the end.
   */
  async function* read(
    Key: string,
    hash: string,
    { start, end }: Range,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const digest = start === 0 && end === Infinity ? createHash('sha256') : undefined
    for (let at = start, tried = 1; ; tried++) {
      let body: Readable | undefined
      try {
        const Range =
          at === 0 && end === Infinity
            ? undefined
            : `bytes=${at}-${end === Infinity ? '' : end - 1}`
        const answer = await client.send(
          new sdk.GetObjectCommand({ Bucket, Key, ...(Range === undefined ? {} : { Range }) }),
          { abortSignal: signal },
        )
        if (Range !== undefined && answer.$metadata.httpStatusCode !== 206)
          throw fault('UNAVAILABLE', { what: WHAT, why: 'it does not read ranges' })
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
            what: WHAT,
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
          yield* read(home + hash, hash, range, link.signal)
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
       * S3 does not say whether there was something to delete, so it is asked first: of two that
       * remove at once both may be told true.
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

/** INVALID_FIELD names the option, or the variable. */
export function s3Settings(url: URL, secret: AdapterContext['secret']) {
  const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })
  const { searchParams } = url
  const endpoint = searchParams.get('endpoint') ?? undefined
  const pathStyle = searchParams.get('pathStyle') ?? 'false'
  const at = endpoint !== undefined && URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (
    endpoint !== undefined &&
    !(
      at &&
      ['http:', 'https:'].includes(at.protocol) &&
      at.username === '' &&
      at.password === '' &&
      at.search === ''
    )
  )
    throw refuse('endpoint', 'must be an http: or https: URL without user, password or query')
  if (!['true', 'false'].includes(pathStyle)) throw refuse('pathStyle', 'must be true or false')
  if (url.username !== '' || url.password !== '')
    throw refuse('BLOBS_URL', 'must hold no keys; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY do')
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname))
    throw refuse('BLOBS_URL', 'is written as s3://bucket/prefix?region=…')
  const accessKeyId = secret('AWS_ACCESS_KEY_ID')
  const secretAccessKey = secret('AWS_SECRET_ACCESS_KEY')
  const sessionToken = secret('AWS_SESSION_TOKEN')
  if (Boolean(accessKeyId) !== Boolean(secretAccessKey))
    throw refuse(
      accessKeyId ? 'AWS_SECRET_ACCESS_KEY' : 'AWS_ACCESS_KEY_ID',
      'is needed with the other of the two',
    )
  const folder = decodeURIComponent(url.pathname).replace(/^\/{1,100}|\/{1,100}$/g, '')
  return {
    bucket: url.hostname,
    prefix: folder === '' ? '' : `${folder}/`,
    client: {
      region: searchParams.get('region') ?? 'us-east-1',
      forcePathStyle: pathStyle === 'true',
      ...(at ? { endpoint: at.href } : {}),
      // Without them the library looks where AWS puts them: web identity, container, instance.
      ...(accessKeyId && secretAccessKey
        ? {
            credentials: {
              accessKeyId,
              secretAccessKey,
              ...(sessionToken ? { sessionToken } : {}),
            },
          }
        : {}),
    },
  }
}

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
