// A passage as a document: its text, its terms with their counts, its vector. Queries use the index
// of terms.
import { Binary, type Filter } from 'mongodb'
import { setImmediate as turn } from 'node:timers/promises'
import type { Passage as Given } from '#ports/search.ts'
import { searchLimits } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import { afterPrefix } from '../../_shared/documents.ts'
import { orFault } from '../../_shared/mongodb/database.ts'
import { all, conditions } from '../../_shared/mongodb/filters.ts'
import type { CheckedMatch } from '../lib/queries.ts'
import { byScore, type Found } from '../lib/fusion.ts'
import type { Catalogue, Known, Stored } from './catalogue.ts'

type Passages = Catalogue['passages']

const wanted = searchLimits.depthMax + 1
const k1 = 1.2
const b = 0.75
/** Passages that are scored between two turns of the event loop. */
const turnPassages = 2000

export const counted = (terms: readonly string[]): Stored['terms'] => {
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return [...counts].map(([t, n]) => ({ t, n }))
}
export const vectorOf = ({ vector }: Pick<Stored, 'vector'>): Float32Array | undefined =>
  vector && new Float32Array(Uint8Array.from(vector.buffer.subarray(0, vector.position)).buffer)
export const binaryOf = (vector: readonly number[] | Float32Array): Binary =>
  new Binary(new Uint8Array(Float32Array.from(vector).buffer))
export const givenOf = ({ key, text, said, fields, vector }: Stored): Given => ({
  id: key,
  text,
  fields,
  ...(said ? { language: said } : {}),
  ...(vector ? { vector: [...vectorOf({ vector })!] } : {}),
})

/** The filter for one generation, with the port's meaning of conditions. */
export function filterOf(at: string, where: Where): Filter<Stored> {
  const named = Object.entries(where).flatMap(([field, condition]) =>
    conditions({ [field === 'id' ? 'key' : `fields.${field}`]: condition }),
  )
  return all([{ g: at } as never, ...named]) as unknown as Filter<Stored>
}

/** Keeps the best results in order. */
function best(found: Iterable<readonly [id: string, score: number]>): Found[] {
  return Array.from(found, ([id, score]) => ({ id, score }))
    .sort(byScore)
    .slice(0, wanted)
}

export async function byWords(
  passages: Passages,
  { entry: { at } }: Known,
  terms: readonly string[],
  where: Where,
): Promise<Found[]> {
  const [sums] = await orFault(
    passages
      .aggregate<{ count: number; length: number }>([
        { $match: { g: at } },
        { $group: { _id: null, count: { $sum: 1 }, length: { $sum: '$length' } } },
      ])
      .toArray(),
  )
  if (!sums) return []
  const mean = sums.length / sums.count
  const scores = new Map<string, number>()
  const filter = filterOf(at, where)
  let seen = 0
  for (const term of terms) {
    const n = await orFault(passages.countDocuments({ g: at, 'terms.t': term }))
    const idf = Math.log(1 + (sums.count - n + 0.5) / (n + 0.5))
    const matching = passages.find(
      { $and: [{ g: at, 'terms.t': term }, filter] },
      { projection: { key: 1, length: 1, terms: { $elemMatch: { t: term } } } },
    )
    for await (const {
      key,
      length,
      terms: [one],
    } of matching) {
      const tf = one?.n ?? 0
      scores.set(
        key,
        (scores.get(key) ?? 0) + (idf * tf) / (tf + k1 * (1 - b + (b * length) / mean)),
      )
      if (++seen % turnPassages === 0) await turn()
    }
  }
  return best(scores)
}

export async function byVector(
  passages: Passages,
  { entry: { at }, spec: { dimensions } }: Known,
  vector: readonly number[],
  where: Where,
  cosineMin: number,
): Promise<Found[]> {
  const asked = Float32Array.from(vector)
  let found: Found[] = []
  let seen = 0
  for await (const one of passages.find(
    { $and: [filterOf(at, where), { vector: { $exists: true } }] },
    { projection: { key: 1, vector: 1 } },
  )) {
    const kept = vectorOf(one)!
    let cosine = 0
    for (let place = 0; place < dimensions; place++) cosine += kept[place]! * asked[place]!
    if (Math.fround(cosine) >= Math.fround(cosineMin)) found.push({ id: one.key, score: cosine })
    if (++seen % turnPassages !== 0) continue
    if (found.length > wanted * 4) found = found.sort(byScore).slice(0, wanted)
    await turn()
  }
  return found.sort(byScore).slice(0, wanted)
}

/** Finds passages with every word, the last ids first, in the order of the index of terms. */
export async function holding(
  passages: Passages,
  { entry: { at } }: Known,
  words: readonly (readonly string[])[],
  { where, before, limit }: CheckedMatch,
): Promise<Stored[]> {
  const { id } = where
  const prefix = typeof id === 'object' && 'prefix' in id ? id.prefix : ''
  const end = [afterPrefix(at + prefix), before === undefined ? undefined : at + before]
    .filter(one => one !== undefined)
    .sort((a, z) => Buffer.compare(Buffer.from(a), Buffer.from(z)))[0]!
  const [first, ...others] = words.map(terms => ({
    'terms.t': terms.length === 1 ? terms[0]! : { $in: [...terms] },
  }))
  return orFault(
    passages
      .find(
        {
          $and: [
            { g: at, ...first, _id: { $gte: at + prefix, $lt: end } },
            ...others,
            filterOf(at, where),
          ],
        } as never,
        { projection: { terms: 0, vector: 0 }, sort: { _id: -1 }, limit: limit + 1 },
      )
      .toArray(),
  )
}
