// The list of collections, and how one is changed. A new generation is filled beside the old one,
// which goes on answering.
// Writers wait meanwhile. A writer that had begun repeats its write.
import { ObjectId, type Binary, type Collection as Kept, type Db } from 'mongodb'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Language } from '#ports/search.ts'
import { analysisVersion, createAnalysers, type Analyser } from '../analysis/analyser.ts'
import { notFound, sameSpec, type Fields, type Spec } from '../lib/specs.ts'
import { orFault } from '../../_shared/mongodb/database.ts'
import { locksIn } from '../../_shared/mongodb/lock.ts'

/** `at`: the generation that answers. `next`: the one that is being filled. */
export type Entry = {
  _id: string
  org: string
  name: string
  spec: string
  analysis: number
  at: string
  next?: string
}
/**
 * `_id` is the generation and the passage's id, so that a generation is in the order of ids; `key`
 * is the id alone, for filters.
 */
export type Stored = {
  _id: string
  g: string
  key: string
  text: string
  language: Language
  said?: Language
  fields: Fields
  length: number
  terms: readonly { readonly t: string; readonly n: number }[]
  vector?: Binary
}
export type Known = { readonly entry: Entry; readonly spec: Spec; readonly analyser: Analyser }
/** Copies the old generation into the new one. It calls `renew` between its steps. */
export type Refill = (
  from: Known,
  to: { readonly at: string; readonly spec: Spec; readonly analyser: Analyser },
  renew: () => Promise<void>,
) => Promise<void>

const waitMs = 50
const waitMsMax = 90_000
const serviceName = 'The search index'

export type Catalogue = ReturnType<typeof createCatalogue>
export function createCatalogue(db: Db, clock: Clock, closing: AbortSignal) {
  const entries = db.collection<Entry>('search_collections')
  const passages = db.collection<Stored>('search_passages')
  const analysers = createAnalysers()
  const locks = locksIn(db, clock)
  const idOf = (org: string, name: string) => `${org}/${name}`
  const lockOf = (id: string) => `search ${id}`

  const look = async (org: string, name: string): Promise<Known | undefined> => {
    const entry = await orFault(entries.findOne({ _id: idOf(org, name) }))
    if (!entry) return undefined
    const spec = JSON.parse(entry.spec) as Spec
    return { entry, spec, analyser: await analysers(spec.languages) }
  }
  const of = async (org: string, name: string): Promise<Known> => {
    const known = await look(org, name)
    if (!known) throw notFound()
    return known
  }
  const forget = (at: string) => orFault(passages.deleteMany({ g: at }))
  /** Waits while a generation is being filled. Removes one whose filler died. */
  const settled = async (org: string, name: string): Promise<Known> => {
    for (const end = clock.monotonic() + waitMsMax; ; ) {
      const known = await of(org, name)
      const { _id, next } = known.entry
      if (next === undefined) return known
      if (!(await locks.isHeld(lockOf(_id)))) {
        const { modifiedCount } = await orFault(
          entries.updateOne({ _id, next }, { $unset: { next: '' } }),
        )
        if (modifiedCount === 1) await forget(next)
        continue
      }
      if (clock.monotonic() >= end)
        throw fault(
          'UNAVAILABLE',
          { what: serviceName, why: 'the collection is being changed' },
          { retryAfterMs: 1000 },
        )
      await clock.sleep(waitMs, closing)
    }
  }
  return {
    of,
    passages: passages as Kept<Stored>,
    /** Repeats a read during which the collection changed its generation. */
    async reading<T>(org: string, name: string, act: (known: Known) => Promise<T>): Promise<T> {
      for (;;) {
        const known = await of(org, name)
        const answer = await act(known)
        if ((await of(org, name)).entry.at === known.entry.at) return answer
      }
    },
    /**
     * Repeats a write that may have come too late to be copied into a new generation. Returns the
     * highest count of the tries.
     */
    async writing(
      org: string,
      name: string,
      act: (known: Known) => Promise<number>,
    ): Promise<number> {
      for (let most = 0; ; ) {
        const known = await settled(org, name)
        most = Math.max(most, await act(known))
        const { entry } = await of(org, name)
        if (entry.at === known.entry.at && entry.next === undefined) return most
      }
    },
    async define(org: string, name: string, spec: Spec, refill: Refill): Promise<void> {
      const _id = idOf(org, name)
      const analyser = await analysers(spec.languages)
      const isDone = async () => {
        const known = await look(org, name)
        return (
          known !== undefined &&
          sameSpec(known.spec, spec) &&
          known.entry.analysis === analysisVersion
        )
      }
      await locks.within(lockOf(_id), {
        what: serviceName,
        signal: closing,
        isDone,
        async act(renew) {
          if (await isDone()) return
          const at = new ObjectId().toHexString()
          const fresh = { spec: JSON.stringify(spec), analysis: analysisVersion, at }
          const before = await look(org, name)
          if (!before) {
            await orFault(
              entries.updateOne(
                { _id },
                { $setOnInsert: { org, name, ...fresh } },
                { upsert: true },
              ),
            )
            return
          }
          if (before.entry.next !== undefined) await forget(before.entry.next)
          await orFault(entries.updateOne({ _id, at: before.entry.at }, { $set: { next: at } }))
          try {
            await refill(before, { at, spec, analyser }, renew)
            const { modifiedCount } = await orFault(
              entries.updateOne(
                { _id, at: before.entry.at, next: at },
                { $set: fresh, $unset: { next: '' } },
              ),
            )
            if (modifiedCount === 0)
              throw fault('UNAVAILABLE', {
                what: serviceName,
                why: 'the collection was taken away',
              })
          } catch (error) {
            await entries
              .updateOne({ _id, next: at }, { $unset: { next: '' } })
              .then(() => forget(at))
              .catch(() => 'whoever writes next sees that nobody fills it')
            throw error
          }
          await forget(before.entry.at)
        },
      })
    },
    async drop(org: string, name: string): Promise<boolean> {
      const entry = await orFault(entries.findOneAndDelete({ _id: idOf(org, name) }))
      if (!entry) return false
      for (const at of [entry.at, entry.next]) if (at !== undefined) await forget(at)
      return true
    },
    names: async (org: string): Promise<string[]> =>
      (
        await orFault(
          entries.find({ org }, { projection: { name: 1 }, sort: { _id: 1 } }).toArray(),
        )
      ).map(({ name }) => name),
    addresses: async (after: string, limit: number): Promise<string[]> =>
      (
        await orFault(
          entries
            .find({ _id: { $gt: after } }, { projection: { _id: 1 }, sort: { _id: 1 }, limit })
            .toArray(),
        )
      ).map(({ _id }) => _id),
    /**
     * Terms are looked up in the order of ids. Lengths are summed from their index, without reading
     * passages.
     */
    ready: () =>
      orFault(
        passages.createIndexes([
          { name: 'terms', key: { g: 1, 'terms.t': 1, _id: -1 } },
          { name: 'lengths', key: { g: 1, length: 1 } },
        ]),
      ),
  }
}
