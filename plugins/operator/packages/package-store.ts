// Packages of plugins in the shared storage: from there come processes by them that were not there
// when one was added, and installations that were restored or moved.
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { create, extract } from 'tar'
import { fault } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import { collection, type ScopedStorage } from '#ports/storage.ts'
import { refuse } from './packages.ts'

/**
 * `id`: the package's folder, `<package>/<version>-<digest>`. `mac`: of the folder and the parts,
 * by the installation's own secret, so that whoever can merely write to the storage brings no code
 * into a process.
 */
type StoredPackage = {
  readonly id: string
  readonly package: string
  readonly copy: string
  readonly parts: number
  readonly bytes: number
  readonly mac: string
}
/**
 * `id`: `<copy>:<number>`. `data`: base64. `until`: it goes by itself where whoever wrote it came
 * to no end; milliseconds since 1970.
 */
type Part = {
  readonly id: string
  readonly copy: string
  readonly data: string
  readonly until?: number
}
export const StoredPackages = collection<StoredPackage>({
  name: 'operator_packages',
  scope: 'platform',
  index: [['package']],
})
export const Parts = collection<Part>({
  name: 'operator_package_parts',
  scope: 'platform',
  index: [['copy']],
  expires: 'until',
})

/** Of a part before it is base64, and of a whole package with what it depends on, compressed. */
const partBytes = 384 * 1024
const parcelBytesMax = 128 * 1024 * 1024
/** How long writing one may take, in milliseconds. */
const writingMsMax = 86_400_000

async function* inParts(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of content) {
    held.push(chunk)
    bytes += chunk.length
    if (bytes < partBytes) continue
    const whole = Buffer.concat(held)
    for (let at = 0; at + partBytes <= whole.length; at += partBytes)
      yield whole.subarray(at, at + partBytes)
    held = [whole.subarray(whole.length - (whole.length % partBytes))]
    bytes = held[0]!.length
  }
  if (bytes > 0) yield Buffer.concat(held)
}

/** The plugin's `system` list. */
export const across = 'packages of plugins belong to no organisation'

type Deps = {
  readonly storage: Pick<ScopedStorage, 'system' | 'durable'>
  readonly clock: Pick<Clock, 'id' | 'now'>
  readonly config: { readonly auth_secret?: string }
}

/**
 * `folder` is relative to `home`, the folder of all packages. Without AUTH_SECRET nothing is kept:
 * other processes have to have the same one anyway.
 */
export function createPackageStore({ storage, clock, config: { auth_secret: secret } }: Deps) {
  const own = storage.system(across)
  const macOf = (folder: string, digest: Buffer) =>
    createHmac('sha256', Buffer.from(hkdfSync('sha256', secret!, '', 'packages of plugins', 32)))
      .update(`${folder}\n`)
      .update(digest)
      .digest('base64url')
  const packageOf = (folder: string) => folder.split('/')[0]!
  const partId = (copy: string, number: number) => `${copy}:${number}`
  const forgetCopy = (copy: string) => own.removeMany(Parts, { copy })

  const write = async (
    folder: string,
    path: string,
  ): Promise<Omit<StoredPackage, 'id' | 'package'>> => {
    const copy = clock.id()
    const hash = createHash('sha256')
    let parts = 0
    let bytes = 0
    try {
      for await (const part of inParts(create({ gzip: true, portable: true, cwd: path }, ['.']))) {
        if ((bytes += part.length) > parcelBytesMax)
          throw refuse(
            `the package is larger than ${parcelBytesMax} bytes with what it depends on, ` +
              'and would not reach other processes',
          )
        hash.update(part)
        await own.insert(Parts, {
          id: partId(copy, parts++),
          copy,
          data: part.toString('base64'),
          until: clock.now() + writingMsMax,
        })
      }
      await own.updateMany(Parts, { copy }, { unset: ['until'] })
    } catch (error) {
      await forgetCopy(copy).catch(() => undefined)
      throw error
    }
    return { copy, parts, bytes, mac: macOf(folder, hash.digest()) }
  }
  async function* read(
    { copy, parts }: StoredPackage,
    hash: ReturnType<typeof createHash>,
  ): AsyncGenerator<Buffer> {
    for (let number = 0; number < parts; number++) {
      const part = await own.get(Parts, partId(copy, number))
      if (!part)
        throw fault('UNAVAILABLE', {
          what: 'A package of a plugin',
          why: 'its parts are being replaced',
        })
      const data = Buffer.from(part.data, 'base64')
      hash.update(data)
      yield data
    }
  }
  return {
    /** Keeps what lies in the folder for others, in place of what was kept under its name. */
    async keep(home: string, folder: string): Promise<void> {
      if (secret === undefined) return
      const written = await write(folder, join(home, folder))
      const before = await own.get(StoredPackages, folder)
      if (before) await own.update(StoredPackages, folder, { set: written })
      else await own.insert(StoredPackages, { id: folder, package: packageOf(folder), ...written })
      await storage.durable()
      if (before) await forgetCopy(before.copy)
    },
    /**
     * Puts the folder where it belongs; false where none is kept. PLUGIN_REFUSED where it is not
     * what was kept.
     */
    async fetchPackage(home: string, folder: string): Promise<boolean> {
      const parcel = secret === undefined ? undefined : await own.get(StoredPackages, folder)
      if (!parcel) return false
      mkdirSync(home, { recursive: true, mode: 0o700 })
      const staging = mkdtempSync(join(home, '.new-'))
      const packed = join(staging, 'packed')
      const whole = join(staging, 'whole')
      const at = join(home, folder)
      const hash = createHash('sha256')
      try {
        // A stream that opens its file by itself may do so when the folder is about to go.
        const file = await open(packed, 'wx', 0o600)
        await pipeline(read(parcel, hash), file.createWriteStream())
        const found = Buffer.from(macOf(folder, hash.digest()))
        const kept = Buffer.from(parcel.mac)
        if (found.length !== kept.length || !timingSafeEqual(found, kept))
          throw refuse(
            `${folder} is not as it was added, or was added under another AUTH_SECRET; add ` +
              'it again',
          )
        mkdirSync(whole)
        await extract({ file: packed, cwd: whole, strict: true, preserveOwner: false })
        mkdirSync(dirname(at), { recursive: true })
        try {
          renameSync(whole, at)
        } catch (error) {
          // Another process with the same DATA_DIR was first.
          if (!existsSync(at)) throw error
        }
        return true
      } finally {
        rmSync(staging, { recursive: true, force: true })
      }
    },
    /** Every version of a package, one of which is this folder. */
    async forget(folder: string): Promise<void> {
      for (;;) {
        const { items } = await own.find(StoredPackages, {
          where: { package: packageOf(folder) },
          limit: 100,
        })
        for (const { id, copy } of items) {
          await own.remove(StoredPackages, id)
          await forgetCopy(copy)
        }
        if (items.length === 0) return
      }
    },
  }
}
export type PackageStore = ReturnType<typeof createPackageStore>
