import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { BlobsEngine } from '#ports/blobs.ts'
import { blobsKit, chunks } from '../../test/conformance/blobs.ts'
import { opening } from '../../test/conformance/opening.ts'
import { scopedBlobs } from '../../test/conformance/scoped.ts'
import { systemClock } from '../clock/system.ts'
import adapter, { fileBlobs } from './file.ts'

const clock = systemClock()
const ownOrg = '01890000-0000-7000-8000-00000000000a'
const home = await fs.mkdtemp(join(tmpdir(), 'blobs-'))
const folder = (): Promise<string> => fs.mkdtemp(join(home, 'blobs-'))

/** node:fs/promises on a disk with room for so many bytes a file. */
const smallDisk = (room: number) => ({
  ...fs,
  open: async (...asked: Parameters<typeof fs.open>) => {
    const handle = await fs.open(...asked)
    let written = 0
    const write = handle.write.bind(handle) as (
      data: Uint8Array,
      at: number,
    ) => Promise<{ bytesWritten: number }>
    const full = async (data: Uint8Array, at: number) => {
      const fits = Math.min(data.length - at, room - written)
      if (fits <= 0)
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      written += fits
      return write(data.subarray(0, at + fits), at)
    }
    return Object.assign(handle, { write: full })
  },
})

for (const [name, face] of [
  ['file', (engine: BlobsEngine) => engine],
  ['file, of a tenant', scopedBlobs],
] as const) {
  blobsKit(test, name, {
    place: async () => {
      const root = await folder()
      return {
        open: async () => face(await fileBlobs({ root, clock })),
        leftovers: () => fs.readdir(join(root, '.temporary')),
      }
    },
    survives: true,
    full: async () =>
      face(
        await fileBlobs({
          root: await folder(),
          clock,
          files: smallDisk(100_000) as unknown as typeof fs,
        }),
      ),
  })
}

test('a full disk leaves no file behind', async () => {
  const root = await folder()
  const engine = await fileBlobs({ root, clock, files: smallDisk(15_000) as unknown as typeof fs })
  await engine
    .within(ownOrg)
    .put(chunks(new Uint8Array(20_000)))
    .then(
      () => assert.unreachable(),
      error => assert.is(error.code, 'STORAGE_FULL'),
    )
  assert.equal(await fs.readdir(root), ['.temporary'])
  assert.equal(await fs.readdir(join(root, '.temporary')), [])
  await engine.close()
})
test('files and folders are for their owner alone', async () => {
  const root = join(await folder(), 'deep', 'blobs')
  const engine = await fileBlobs({ root, clock })
  const { hash } = await engine.within(ownOrg).put(chunks(new Uint8Array(10)))
  const modeOf = async (...path: string[]) =>
    ((await fs.stat(join(root, ...path))).mode & 0o777).toString(8)
  assert.is(await modeOf(ownOrg, hash.slice(0, 2), hash), '600')
  for (const path of [[], [ownOrg], [ownOrg, hash.slice(0, 2)], ['.temporary']])
    assert.is(await modeOf(...path), '700')
  await engine.close()
})
test('opening removes what a dead process left, and spares what another writes now', async () => {
  const root = await folder()
  await (await fileBlobs({ root, clock })).close()
  const long = new Date(Date.now() - 2 * 3_600_000)
  for (const name of ['stale', 'fresh']) await fs.writeFile(join(root, '.temporary', name), 'x')
  await fs.utimes(join(root, '.temporary', 'stale'), long, long)
  await (await fileBlobs({ root, clock })).close()
  assert.equal(await fs.readdir(join(root, '.temporary')), ['fresh'])
})
test('the file and each new folder above it are synced before a put resolves', async () => {
  const root = await folder()
  const synced: string[] = []
  const open = async (...asked: Parameters<typeof fs.open>) => {
    const handle = await fs.open(...asked)
    const sync = handle.sync.bind(handle)
    return Object.assign(handle, {
      sync: async () => {
        synced.push(String(asked[0]).replace(root, ''))
        await sync()
      },
    })
  }
  const engine = await fileBlobs({ root, clock, files: { ...fs, open: open as typeof fs.open } })
  synced.length = 0
  const { hash } = await engine.within(ownOrg).put(chunks(new Uint8Array(10)))
  assert.match(synced[0]!, /^\/\.temporary\//)
  assert.equal(synced.slice(1), [`/${ownOrg}`, '', `/${ownOrg}/${hash.slice(0, 2)}`])
  await engine.close()
})
test('the URL names the folder; without a path it is blobs within the data folder', async () => {
  const dataDir = await folder()
  await (await adapter.open(opening('file:', { clock, dataDir }))).close()
  assert.ok((await fs.stat(join(dataDir, 'blobs'))).isDirectory())
  await (await adapter.open(opening(`file:${dataDir}/with%20space`, { clock, dataDir }))).close()
  assert.ok((await fs.stat(join(dataDir, 'with space'))).isDirectory())
})
test.after(() => fs.rm(home, { recursive: true }))
test.run()
