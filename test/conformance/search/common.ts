// What the parts of the search kit share.
import assert from 'node:assert/strict'
import type { CollectionSpec, Passage, Passages, SearchEngine, SearchQuery } from '#ports/search.ts'

export type SearchPlace = { open(): Promise<SearchEngine>; clean?(): Promise<void> }
/**
 * `another`: a second process on the same place; `exactStatistics`: what was replaced weighs
 * nothing from then on.
 */
export type SearchNeed = 'another' | 'exactStatistics'
export type On = (
  title: string,
  run: (passages: Passages, engine: SearchEngine, place: SearchPlace) => Promise<void>,
  needs?: readonly SearchNeed[],
) => void

export const ownOrg = '01890000-0000-7000-8000-00000000000a'
export const otherOrg = '01890000-0000-7000-8000-00000000000b'

/** Words as they stand, so that a check knows every term. */
export const plain: CollectionSpec = { languages: ['none'] }
export const mixed: CollectionSpec = {
  languages: ['none'],
  dimensions: 3,
  fields: { folder: 'string', page: 'number', open: 'boolean' },
}

/** Drops every collection of both organisations. */
export const emptied = async (engine: SearchEngine): Promise<void> => {
  for (const org of [ownOrg, otherOrg])
    for (const name of await engine.within(org).collections()) await engine.within(org).drop(name)
}

export async function index(
  passages: Passages,
  collection: string,
  list: readonly Passage[],
): Promise<void> {
  for (let at = 0; at < list.length; at += 500)
    assert.deepEqual((await passages.index(collection, list.slice(at, at + 500))).errors, [])
}
export const idsOf = async (
  passages: Passages,
  collection: string,
  query: SearchQuery,
): Promise<string[]> => (await passages.query(collection, query)).hits.map(({ id }) => id)

/** How a plugin keeps what its documents say, and finds it again. */
export async function answerFrom(
  search: { tenant(scope: { readonly orgId: string }): Passages },
  caller: { readonly orgId: string },
  question: string,
): Promise<string[]> {
  const passages = search.tenant(caller)
  await passages.define('handbook', {
    languages: ['en', 'de'],
    fields: { folder: 'string', page: 'number' },
  })
  const { errors } = await passages.index('handbook', [
    {
      id: 'travel-1',
      text: 'Travelling by train is paid for in first class.',
      fields: { folder: 'travel', page: 1 },
    },
    {
      id: 'travel-2',
      text: 'Flüge bucht die Reisestelle, Bahnfahrten jeder selbst.',
      fields: { folder: 'travel', page: 2 },
    },
  ])
  for (const { id, error } of errors) throw new Error(`${id}: ${error.message}`)
  const { hits } = await passages.query('handbook', {
    text: question,
    where: { folder: 'travel' },
    limit: 5,
  })
  return hits.map(
    ({ text, highlights }) =>
      `${text} (${highlights.map(([start, end]) => text.slice(start, end)).join(', ')})`,
  )
}
