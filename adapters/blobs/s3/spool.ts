// Keeps bytes on disk until their length and hash are known. The file has no name, so nothing is
// left however the process ends.
import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { isFull } from '../../_shared/atomic-file.ts'

const readBytes = 262_144

/** `read` starts from the beginning each time. */
export type Spooled = {
  readonly hash: string
  readonly bytes: number
  read(): AsyncGenerator<Uint8Array>
  close(): Promise<void>
}

/**
 * BODY_TOO_LARGE past `bytesMax`, STORAGE_FULL when the disk is full. A failure leaves nothing
 * behind.
 */
export async function spooled(
  content: AsyncIterable<Uint8Array>,
  { folder, bytesMax, clock }: { folder: string; bytesMax: number; clock: Pick<Clock, 'id'> },
): Promise<Spooled> {
  const path = join(folder, clock.id())
  const handle = await open(path, 'wx+', 0o600)
  const digest = createHash('sha256')
  let bytes = 0
  try {
    await rm(path)
    for await (const part of content) {
      if (bytes + part.length > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
      digest.update(part)
      for (let at = 0; at < part.length; )
        at += (await handle.write(part, at, part.length - at, bytes + at)).bytesWritten
      bytes += part.length
    }
  } catch (error) {
    await handle.close()
    throw isFull(error) ? fault('STORAGE_FULL', {}, { cause: error }) : error
  }
  return {
    hash: digest.digest('hex'),
    bytes,
    async *read() {
      for (let at = 0; at < bytes; ) {
        const { bytesRead, buffer } = await handle.read({
          buffer: Buffer.allocUnsafe(Math.min(readBytes, bytes - at)),
          position: at,
        })
        if (bytesRead === 0) return
        at += bytesRead
        yield buffer.subarray(0, bytesRead)
      }
    },
    close: () => handle.close(),
  }
}
