// What every blob store promises. `survives`: what was put is there after closing and opening
// again. `bytesMax`: set where the store was opened with that little room.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { Blobs, BlobsEngine } from '#ports/blobs.ts'
import { refuses, rejectsWith, type Test, withOpened } from './runner.ts'

type Place = {
  open(): Promise<BlobsEngine>
  /** Files that a put left behind beside its blobs. */
  leftovers?(): Promise<readonly string[]>
  clean?(): Promise<void>
}
type Kit = {
  place: () => Promise<Place>
  survives: boolean
  /** A store with room for little, where one can be made. */
  full?: () => Promise<BlobsEngine>
}

const ownOrg = '01890000-0000-7000-8000-00000000000a'
const otherOrg = '01890000-0000-7000-8000-00000000000b'
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

export async function* chunks(bytes: Uint8Array, size = 10_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
export async function whole(
  blobs: Blobs,
  hash: string,
  options: Parameters<Blobs['get']>[1] = {},
): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(blobs.get(hash, options)))
}
/** Yields one chunk, then nothing for ever. */
async function* stuck(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(1000)
  await new Promise(() => {})
}

export function blobsKit(test: Test, name: string, { place, survives, full }: Kit): void {
  const on = (title: string, run: (engine: BlobsEngine, at: Place) => Promise<void>): void =>
    test(
      `${name}: ${title}`,
      withOpened(
        async () => {
          const at = await place()
          const clean = async () => {
            assert.deepEqual((await at.leftovers?.()) ?? [], [])
            await at.clean?.()
          }
          return { at, engine: await at.open(), clean }
        },
        ({ engine }) => engine,
        ({ engine, at }) => run(engine, at),
      ),
    )
  contents(on)
  refusals(on)
  states(test, name, { place, survives, ...(full ? { full } : {}) })
}

type On = (title: string, run: (engine: BlobsEngine, at: Place) => Promise<void>) => void

function contents(on: On): void {
  on(
    'what was put comes back under its SHA-256, whatever its size and however it was cut',
    async engine => {
      const blobs = engine.within(ownOrg)
      for (const size of [0, 1, 65_535, 65_536, 65_537, 1_000_000]) {
        const bytes = randomBytes(size)
        const blob = await blobs.put(chunks(bytes, 7_001))
        assert.deepEqual(blob, { hash: hashOf(bytes), bytes: size })
        assert.deepEqual(await blobs.stat(blob.hash), blob)
        assert.ok((await whole(blobs, blob.hash)).equals(bytes))
      }
    },
  )
  on('a source that uses one buffer again and again spoils nothing', async engine => {
    const blobs = engine.within(ownOrg)
    const shared = Buffer.alloc(100)
    const { hash, bytes } = await blobs.put(
      (async function* () {
        for (let n = 0; n < 5; n++) yield shared.fill(n)
      })(),
    )
    const expected = Buffer.concat([0, 1, 2, 3, 4].map(n => Buffer.alloc(100, n)))
    assert.equal(bytes, 500)
    assert.equal(hash, hashOf(expected))
    assert.ok((await whole(blobs, hash)).equals(expected))
  })
  on('a range is read by its offsets; beyond the end there is nothing', async engine => {
    const blobs = engine.within(ownOrg)
    const bytes = randomBytes(200_000)
    const { hash } = await blobs.put(chunks(bytes))
    for (const [start, end] of [
      [0, 10],
      [10, 10],
      [65_530, 140_000],
      [199_999, 200_000],
      [199_999, 900_000],
      [200_000, 200_001],
      [900_000, 900_001],
    ] as const) {
      assert.ok(
        (await whole(blobs, hash, { start, end })).equals(bytes.subarray(start, end)),
        `${start} to ${end}`,
      )
    }
    assert.ok((await whole(blobs, hash, { start: 5 })).equals(bytes.subarray(5)))
    await refuses('INVALID_FIELD', () => whole(blobs, hash, { start: -1 }))
    await refuses('INVALID_FIELD', () => whole(blobs, hash, { start: 0.5 }))
  })
  on('the same content twice is one blob, also when both are put at once', async engine => {
    const blobs = engine.within(ownOrg)
    const bytes = randomBytes(50_000)
    const put = await Promise.all(Array.from({ length: 8 }, () => blobs.put(chunks(bytes))))
    assert.equal(new Set(put.map(blob => blob.hash)).size, 1)
    assert.equal(await blobs.remove(put[0]!.hash), true)
    assert.equal(await blobs.stat(put[0]!.hash), undefined)
  })
  on('every blob of every organisation is listed once, in order, page by page', async engine => {
    const expected: string[] = []
    let scoped = false
    try {
      engine.within(`${ownOrg}-2`)
    } catch {
      scoped = true
    }
    // The last one's name has a character before the slash: the order is that of whole addresses.
    for (const orgId of [ownOrg, otherOrg, `${ownOrg}-2`].slice(0, scoped ? 2 : 3))
      for (let n = 0; n < 5; n++)
        expected.push(
          `${orgId}/${(await engine.within(orgId).put(chunks(randomBytes(20 + n)))).hash}`,
        )
    expected.sort()
    const removed = expected.splice(3, 1)[0]!.split('/') as [string, string]
    await engine.within(removed[0]).remove(removed[1])
    for (const limit of [1, 4, 100]) {
      const found: string[] = []
      for (
        let page: string[];
        (page = await engine.addresses({
          ...(found.length > 0 ? { after: found.at(-1)! } : {}),
          limit,
        })).length > 0;
        found.push(...page)
      )
        assert.ok(page.length <= limit)
      assert.deepEqual(
        found.filter(address => expected.includes(address)),
        expected,
      )
      assert.deepEqual([...new Set(found)].sort(), found)
    }
  })
  on('a reader that leaves in the middle holds nothing back', async engine => {
    const blobs = engine.within(ownOrg)
    const { hash } = await blobs.put(chunks(randomBytes(300_000)))
    for await (const chunk of blobs.get(hash)) {
      assert.ok(chunk.length > 0)
      break
    }
    assert.equal(await blobs.remove(hash), true)
  })
}

function refusals(on: On): void {
  on("one organisation's blob is unknown to another", async engine => {
    const { hash } = await engine.within(ownOrg).put(chunks(randomBytes(10)))
    const other = engine.within(otherOrg)
    assert.equal(await other.stat(hash), undefined)
    assert.equal(await other.remove(hash), false)
    await refuses('NOT_FOUND', () => whole(other, hash))
    assert.ok(await engine.within(ownOrg).stat(hash))
  })
  on('what is absent is not found, and removing it is false', async engine => {
    const blobs = engine.within(ownOrg)
    for (const hash of [
      '0'.repeat(64),
      'F'.repeat(64),
      '',
      'abc',
      '../../../etc/passwd',
      `${'0'.repeat(62)}/.`,
      '..',
    ]) {
      await refuses('NOT_FOUND', () => whole(blobs, hash))
      assert.equal(await blobs.stat(hash), undefined)
      assert.equal(await blobs.remove(hash), false)
    }
  })
  on('an organisation whose name could leave its folder is refused', async engine => {
    for (const orgId of [
      '',
      '.',
      '..',
      '../x',
      'a/b',
      'a\\b',
      'A',
      'a\0',
      '.temporary',
      'x'.repeat(65),
      'a b',
    ])
      await refuses('INVALID_FIELD', () => engine.within(orgId))
  })
  on(
    'a blob of exactly bytesMax passes; one byte more is refused and leaves nothing',
    async engine => {
      const blobs = engine.within(ownOrg)
      const bytes = randomBytes(20_001)
      assert.equal((await blobs.put(chunks(bytes.subarray(1)), { bytesMax: 20_000 })).bytes, 20_000)
      await refuses('BODY_TOO_LARGE', () => blobs.put(chunks(bytes), { bytesMax: 20_000 }))
      assert.equal(await blobs.stat(hashOf(bytes)), undefined)
    },
  )
  on(
    'an abort stops a put at once with its own reason, even while the source is silent, ' +
      'and leaves nothing',
    async (engine, at) => {
      const blobs = engine.within(ownOrg)
      const controller = new AbortController()
      const reason = new Error('gone')
      const putting = blobs.put(stuck(), { signal: controller.signal })
      setTimeout(() => controller.abort(reason), 20)
      await rejectsWith(reason, () => putting)
      await rejectsWith(reason, () =>
        blobs.put(chunks(randomBytes(10)), { signal: controller.signal }),
      )
      assert.deepEqual((await at.leftovers?.()) ?? [], [])
    },
  )
  on('an abort stops a get with its own reason', async engine => {
    const blobs = engine.within(ownOrg)
    const { hash } = await blobs.put(chunks(randomBytes(300_000)))
    const controller = new AbortController()
    const reason = new Error('gone')
    await rejectsWith(reason, async () => {
      for await (const chunk of blobs.get(hash, { signal: controller.signal }))
        controller.abort(chunk.length > 0 ? reason : undefined)
    })
    await rejectsWith(reason, () => whole(blobs, hash, { signal: controller.signal }))
  })
  on('a source that fails fails the put with the same error and leaves nothing', async engine => {
    const blobs = engine.within(ownOrg)
    const reason = new Error('the line broke')
    await rejectsWith(reason, () =>
      blobs.put(
        (async function* () {
          yield new Uint8Array(10)
          throw reason
        })(),
      ),
    )
  })
}

function states(test: Test, name: string, { place, survives, full }: Kit): void {
  if (full)
    test(`${name}: without room it says STORAGE_FULL, keeps its blobs and serves`, async () => {
      const engine = await full()
      const blobs = engine.within(ownOrg)
      const small = await blobs.put(chunks(randomBytes(100)))
      const large = randomBytes(3_000_000)
      await refuses('STORAGE_FULL', () => blobs.put(chunks(large)))
      assert.equal(await blobs.stat(hashOf(large)), undefined)
      assert.equal((await whole(blobs, small.hash)).length, 100)
      assert.equal((await blobs.put(chunks(randomBytes(50)))).bytes, 50)
      await engine.close()
    })
  test(`${name}: closed, it refuses everything and ends what is under way`, async () => {
    const at = await place()
    const engine = await at.open()
    await engine.ping()
    const blobs = engine.within(ownOrg)
    const { hash } = await blobs.put(chunks(randomBytes(10)))
    const ended = refuses('UNAVAILABLE', () => blobs.put(stuck()))
    await new Promise(resolve => setTimeout(resolve, 10))
    await engine.close()
    await ended
    await engine.close()
    for (const call of [
      () => blobs.put(chunks(randomBytes(1))),
      () => whole(blobs, hash),
      () => blobs.stat(hash),
      () => blobs.remove(hash),
      () => engine.ping(),
      () => engine.within(ownOrg),
    ])
      await refuses('UNAVAILABLE', call)
    assert.deepEqual((await at.leftovers?.()) ?? [], [])
    const again = await at.open()
    assert.equal((await again.within(ownOrg).stat(hash)) !== undefined, survives)
    if (survives) assert.equal((await whole(again.within(ownOrg), hash)).length, 10)
    await again.close()
    await at.clean?.()
  })
}
