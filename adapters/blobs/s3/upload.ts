// Puts a blob whose hash is known, in one request.
import { Readable } from 'node:stream'
import type { Store } from './calls.ts'
import type { Spooled } from './spool.ts'

export async function upload(
  { sdk, client, bucket: Bucket }: Store,
  Key: string,
  { hash, bytes, read: readSpooled }: Spooled,
  abortSignal: AbortSignal,
): Promise<void> {
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
      ;(args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] = hash
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
