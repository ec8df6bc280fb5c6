// Changes a collection: a new generation of its index is filled while the old one answers, and
// replaces it in one step. Passages are copied until both hold the same. Then writes to the old one
// are refused for the last difference, and wait. The alias moves in the step that removes the old
// one.
import { isFault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { analysisVersion, type Analyser } from '../analysis/analyser.ts'
import { compareText } from '../../_shared/documents.ts'
import { keptFields, sameSpec, saidLanguage, type Spec } from '../lib/specs.ts'
import { analysed } from '../analysis/analysed.ts'
import type { createBulk, Stored, Write } from './bulk.ts'
import { toFault, unavailable, type Connection, type Refusal } from './connection.ts'
import {
  aliasOf,
  bodyOf,
  fillingOf,
  generation,
  numberOf,
  type Indices,
  type Known,
  type Meta,
} from './indices.ts'

/** Passages compared by their ids and stamps at a time, and copied at a time. */
const comparedRows = 5000
const copiedRows = 200
/**
 * Writes are blocked once the generations differ by no more than this, or after so many rounds of
 * copying.
 */
const differenceMax = 200
const roundsMax = 5
/**
 * How often the filler of a generation renews its beat, and how long it may be silent before others
 * remove its generation. In milliseconds.
 */
const beatMs = 3000
const goneMs = 30_000
const pollMs = 200
/**
 * Bounds the tries to define a collection: two processes with different specifications would
 * exchange it for ever.
 */
const definitionsMax = 10

type Row = { readonly id: string; readonly stamp: string }
type Kept = { readonly _source: Omit<Stored, 'terms'> }
type Parts = {
  readonly connection: Connection
  readonly indices: Indices
  readonly bulk: ReturnType<typeof createBulk>
  readonly clock: Clock
  readonly sizes: { readonly shards: number; readonly replicas: number }
}

/** Errors of removing what does not exist. */
const goneTypes = ['aliases_not_found_exception', 'index_not_found_exception']
const exists = ({ type }: Refusal) =>
  type === 'resource_already_exists_exception' || type === 'invalid_alias_name_exception'

export function createGenerations({ connection: { call }, indices, bulk, clock, sizes }: Parts) {
  const make = (index: string, meta: Meta, alias: string): Promise<boolean> =>
    call<unknown>('PUT', `/${index}`, { body: bodyOf(meta, sizes, alias) }, refusal => {
      if (exists(refusal)) return false
      throw toFault(refusal)
    }).then(made => made !== false)
  const remove = (index: string) =>
    call('DELETE', `/${index}`, {}, refusal => {
      if (refusal.type !== 'index_not_found_exception') throw toFault(refusal)
      return undefined
    })
  const refresh = (index: string) => call('POST', `/${index}/_refresh`)
  const allow = (index: string) =>
    call<unknown>(
      'PUT',
      `/${index}/_settings`,
      { body: { 'index.blocks.write': null } },
      refusal => {
        if (refusal.type !== 'index_not_found_exception') throw toFault(refusal)
      },
    )
  const forbid = (index: string) => call('PUT', `/${index}/_block/write`)

  /**
   * Both completing and giving up a generation remove its filling alias, which only one of them can
   * do. So a lost answer or a slow filler leaves no doubt.
   */
  const giveUp = async (target: string, old: Known): Promise<boolean> => {
    await call(
      'POST',
      '/_aliases',
      {
        body: {
          actions: [{ remove: { index: target, alias: fillingOf(target), must_exist: true } }],
        },
      },
      refusal => {
        if (!goneTypes.includes(refusal.type)) throw toFault(refusal)
      },
    )
    if (old.alias in ((await indices.describe(target))[target]?.aliases ?? {})) return true
    await remove(target)
    await allow(old.index)
    return false
  }

  async function* rowsOf(index: string): AsyncGenerator<Row> {
    for (let after: unknown[] | undefined; ; ) {
      const {
        hits: { hits },
      } = await call<{ hits: { hits: { fields: { stamp: [string] }; sort: [string] }[] } }>(
        'POST',
        `/${index}/_search`,
        {
          body: {
            size: comparedRows,
            _source: false,
            docvalue_fields: ['stamp'],
            track_total_hits: false,
            sort: [{ id: 'asc' }],
            ...(after ? { search_after: after } : {}),
          },
          query: { allow_partial_search_results: false },
        },
      )
      for (const {
        fields,
        sort: [id],
      } of hits)
        yield { id, stamp: fields.stamp[0] }
      if (hits.length < comparedRows) return
      after = hits.at(-1)!.sort
    }
  }
  /**
   * Compares two generations in the order of ids. Yields passages that the new one lacks or has in
   * another version, and passages that only it has.
   */
  async function* differences(
    from: string,
    to: string,
  ): AsyncGenerator<{ readonly copy: string } | { readonly remove: string }> {
    const [ours, theirs] = [rowsOf(from), rowsOf(to)]
    let [a, b] = [await ours.next(), await theirs.next()]
    while (!a.done || !b.done) {
      const order = a.done ? 1 : b.done ? -1 : compareText(a.value.id, b.value.id)
      if (order < 0 || (order === 0 && a.value!.stamp !== b.value!.stamp))
        yield { copy: a.value!.id }
      else if (order > 0) yield { remove: b.value!.id }
      if (order <= 0) a = await ours.next()
      if (order >= 0) b = await theirs.next()
    }
  }
  const copies = async (
    from: string,
    ids: readonly string[],
    spec: Spec,
    keepsVectors: boolean,
    analyser: Analyser,
  ): Promise<Write[]> => {
    if (ids.length === 0) return []
    const { docs } = await call<{ docs: Partial<Kept>[] }>('POST', `/${from}/_mget`, {
      body: { ids },
    })
    const found = docs.flatMap(({ _source }) => (_source ? [_source] : []))
    const changed = found.map(({ vector, fields, said, language: _, ...rest }) => ({
      ...rest,
      language: saidLanguage(said, spec),
      fields: keptFields(fields, spec),
      ...(saidLanguage(said, spec) ? { said: said! } : {}),
      ...(keepsVectors && vector ? { vector } : {}),
    }))
    return (await analysed(changed, analyser)).map(put => ({ put }))
  }
  /** Brings the new generation up to date. Returns how many passages differed. */
  const together = async (
    old: Known,
    target: string,
    meta: Meta,
    analyser: Analyser,
    heartbeat: () => Promise<void>,
  ): Promise<number> => {
    await Promise.all([refresh(old.index), refresh(target)])
    const keepsVectors = old.meta.spec.dimensions === meta.spec.dimensions
    let count = 0
    let ids: string[] = []
    let removals: Write[] = []
    const flush = async () => {
      const { errors } = await bulk(fillingOf(target), [
        ...removals,
        ...(await copies(old.index, ids, meta.spec, keepsVectors, analyser)),
      ])
      for (const error of errors.values()) throw error
      ids = []
      removals = []
      await heartbeat()
    }
    for await (const difference of differences(old.index, target)) {
      count++
      if ('copy' in difference) ids.push(difference.copy)
      else removals.push(difference)
      if (ids.length + removals.length >= copiedRows) await flush()
    }
    await flush()
    await refresh(target)
    return count
  }
  const exchange = async (old: Known, target: string, meta: Meta): Promise<void> => {
    const analyser = await indices.analysers(meta.spec.languages)
    let lastHeartbeat = clock.monotonic()
    const heartbeat = async () => {
      if (clock.monotonic() - lastHeartbeat < beatMs) return
      lastHeartbeat = clock.monotonic()
      await call('PUT', `/${target}/_mapping`, { body: { _meta: { ...meta, beat: clock.id() } } })
    }
    const transfer = () => together(old, target, meta, analyser, heartbeat)
    for (let round = 0; round < roundsMax && (await transfer()) > differenceMax; round++)
      await heartbeat()
    await forbid(old.index)
    await transfer()
    await call('POST', '/_aliases', {
      body: {
        actions: [
          { remove: { index: target, alias: fillingOf(target), must_exist: true } },
          { add: { index: target, alias: old.alias } },
          { remove_index: { index: old.index } },
        ],
      },
    })
  }
  /**
   * Waits for another process that fills the next generation. Removes that generation when its
   * filler is silent for too long.
   */
  const watch = async (old: Known, target: string): Promise<void> => {
    let last: string | undefined
    let since = clock.monotonic()
    for (;;) {
      const found = (await indices.describe(target))[target]
      if (!found || old.alias in found.aliases) return
      const { beat = '' } = found.mappings._meta ?? {}
      if (beat !== last) [last, since] = [beat, clock.monotonic()]
      if (clock.monotonic() - since > goneMs) return void (await giveUp(target, old))
      await clock.sleep(pollMs)
    }
  }

  return {
    async define(org: string, collection: string, spec: Spec): Promise<void> {
      const meta = indices.metaOf(org, collection, spec)
      const alias = aliasOf(indices.prefix, org, collection)
      for (let round = 0; round < definitionsMax; round++) {
        const old = await indices.look(org, collection)
        if (!old) {
          await make(generation(alias, 1), meta, alias)
          // Of two processes that create it at once, one succeeds. The other reads what exists now.
          if (await indices.look(org, collection)) continue
          throw unavailable('an index has the name of this collection and is none')
        }
        const target = generation(alias, numberOf(old.index) + 1)
        if (
          sameSpec(old.meta.spec, spec) &&
          old.meta.analysis === analysisVersion &&
          !old.isBlocked
        )
          return
        if (!(await make(target, { ...meta, beat: clock.id() }, fillingOf(target))))
          await watch(old, target)
        else {
          try {
            await exchange(old, target, meta)
          } catch (error) {
            if (!(await giveUp(target, old)))
              throw isFault(error)
                ? error
                : unavailable('the collection could not be changed', error)
          } finally {
            indices.forget(org, collection)
          }
        }
      }
      throw unavailable('others change this collection again and again')
    },
    async drop(org: string, collection: string): Promise<boolean> {
      const known = await indices.look(org, collection)
      if (!known) return false
      indices.forget(org, collection)
      await remove(known.index)
      await remove(generation(known.alias, numberOf(known.index) + 1))
      return true
    },
  }
}
