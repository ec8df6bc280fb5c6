// Every collection of every organisation's passages, in the order of their ids. Terms and rankings
// are not moved: each index makes them anew of the same texts.
import { fault } from '#kernel'
import type { Contents, SearchEngine } from '#ports/search.ts'
import { canonical, inPages, several, sha256, type Digest, type Progress } from './progress.ts'

/**
 * Passages of the largest size that still go in one call of `index`; collections that are read at
 * once.
 */
const page = 100
const atOnce = 4

/** A collection's name may hold slashes, an organisation's does not. */
const placeOf = (address: string) =>
  [address.slice(0, address.indexOf('/')), address.slice(address.indexOf('/') + 1)] as const

/** At least one page, for an empty collection has a specification too. */
async function* contentsOf(search: SearchEngine, address: string): AsyncGenerator<Contents> {
  const [orgId, collection] = placeOf(address)
  for (let after: string | undefined; ; ) {
    const found = await search.contents(orgId, collection, {
      limit: page,
      ...(after === undefined ? {} : { after }),
    })
    yield found
    if (found.passages.length < page) return
    after = found.passages.at(-1)!.id
  }
}

export const hasPassages = async (search: SearchEngine): Promise<boolean> =>
  (await search.addresses({ limit: 1 })).length > 0

async function copyCollection(
  from: SearchEngine,
  to: SearchEngine,
  address: string,
  progress: Progress,
): Promise<void> {
  const [orgId, collection] = placeOf(address)
  const target = to.within(orgId)
  let begun: boolean | undefined
  let after: string | undefined
  for await (const { spec, passages } of contentsOf(from, address)) {
    if (begun === undefined) {
      await target.define(collection, spec)
      begun = (await target.count(collection)) > 0
    }
    const last = passages.at(-1)?.id
    if (last === undefined) break
    // Of a part that was cut off some may be there: it is written again.
    const isThere =
      begun &&
      (await target.count(collection, {
        id: { lte: last, ...(after === undefined ? {} : { gt: after }) },
      })) === passages.length
    if (!isThere) {
      const {
        errors: [refused],
      } = await target.index(collection, passages)
      if (refused)
        throw fault(
          'UNAVAILABLE',
          {
            what: 'The copy',
            why: `the target refuses a passage of ${address}: ${refused.error.message}`,
          },
          { cause: refused.error },
        )
    }
    after = last
    progress.add('passages', { passages: passages.length })
  }
}

export async function copySearch(
  from: SearchEngine,
  to: SearchEngine,
  progress: Progress,
): Promise<void> {
  for await (const found of inPages(options => from.addresses(options)))
    await several(found, atOnce, address => copyCollection(from, to, address, progress))
  progress.say('copied the search index')
}

/**
 * Digests what both sides hold exactly: vectors in single precision and with length 1. A passage's
 * language counts only where its owner named it, because others are detected.
 */
export async function digestSearch(search: SearchEngine, progress: Progress): Promise<Digest[]> {
  const all = sha256()
  let count = 0
  const digest = async (address: string) => {
    const hash = sha256()
    let held = 0
    for await (const { spec, passages } of contentsOf(search, address)) {
      if (held === 0) hash.update(canonical([address, spec]))
      for (const passage of passages) hash.update('\n').update(canonical(passage))
      held += passages.length
      progress.add('verifying the search index', { passages: passages.length })
    }
    return { held, sha256: hash.digest() }
  }
  for await (const found of inPages(options => search.addresses(options)))
    for (const one of await several(found, atOnce, digest)) {
      all.update(one.sha256)
      count += one.held
    }
  return [{ what: 'passages', name: '', count, sha256: all.digest('hex') }]
}
