// Copies every blob of every organisation. A blob's address is its hash, so arrived blobs are
// recognised, and damage is found.
import { fault } from '#kernel'
import type { BlobsEngine } from '#ports/blobs.ts'
import { inPages, several, sha256, type Digest, type Progress } from './progress.ts'

const atOnce = 4

const placeOf = (address: string) => address.split('/') as [orgId: string, hash: string]

export const hasBlobs = async (blobs: BlobsEngine): Promise<boolean> =>
  (await blobs.addresses({ limit: 1 })).length > 0

async function copyBlob(
  from: BlobsEngine,
  to: BlobsEngine,
  address: string,
  progress: Progress,
): Promise<void> {
  const [orgId, hash] = placeOf(address)
  const source = from.within(orgId)
  const target = to.within(orgId)
  const there = await target.stat(hash)
  if (!there || there.bytes !== (await source.stat(hash))?.bytes) {
    const put = await target.put(source.get(hash))
    if (put.hash !== hash)
      throw fault('UNAVAILABLE', {
        what: 'The copy',
        why: `the source's blob ${address} is damaged: its content is not what its address says`,
      })
    progress.add('blobs', { bytes: put.bytes })
  }
  progress.add('blobs', { blobs: 1 })
}

export async function copyBlobs(
  from: BlobsEngine,
  to: BlobsEngine,
  progress: Progress,
): Promise<void> {
  for await (const found of inPages(options => from.addresses(options)))
    await several(found, atOnce, address => copyBlob(from, to, address, progress))
  progress.say('copied the blobs')
}

/**
 * Each blob is read, and stands here with the hash of what was read: on a whole side that is its
 * address.
 */
export async function digestBlobs(blobs: BlobsEngine, progress: Progress): Promise<Digest[]> {
  const all = sha256()
  let count = 0
  const read = async (address: string) => {
    const [orgId, hash] = placeOf(address)
    const content = sha256()
    let bytes = 0
    for await (const part of blobs.within(orgId).get(hash)) {
      content.update(part)
      bytes += part.length
      progress.add('verifying the blobs', { bytes: part.length })
    }
    progress.add('verifying the blobs', { blobs: 1 })
    return `${address} ${content.digest('hex')} ${bytes}\n`
  }
  for await (const found of inPages(options => blobs.addresses(options)))
    for (const line of await several(found, atOnce, read)) {
      all.update(line)
      count++
    }
  return [{ what: 'blobs', name: '', count, sha256: all.digest('hex') }]
}
