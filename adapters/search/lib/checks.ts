// Checks the input of every search adapter, so that each refuses the same in the same words.
import { fault, isFault, type Fault } from '#contracts/faults.ts'
import {
  searchLimits as limits,
  type CollectionSpec,
  type ItemError,
  type Language,
  type Passage,
  type MatchQuery,
  type SearchQuery,
} from '#ports/search.ts'
import type { Scalar, Where } from '#ports/storage.ts'
import { isLanguage } from '../analysis/languages.ts'
import { checkWhere } from '../../_shared/documents.ts'
import { bytesOf, checkedId, isText, refuse, within } from './values.ts'
import { unit } from './vectors.ts'

export type Fields = Readonly<Record<string, Scalar>>
export type Kinds = NonNullable<CollectionSpec['fields']>
/** A specification with its defaults. Two specifications that mean the same have the same form. */
export type Spec = {
  readonly languages: readonly Language[]
  readonly dimensions: number
  readonly fields: Kinds
}
export type CheckedQuery = {
  readonly mode: 'lexical' | 'vector' | 'hybrid'
  readonly text: string
  readonly vector: readonly number[]
  readonly where: Where
  readonly limit: number
  readonly offset: number
  readonly cosineMin: number
}

const namePattern = /^[a-z][a-zA-Z0-9_]*$/
const kinds = ['string', 'number', 'boolean']

/** A name may have any characters; adapters derive a name of their own. */
export function checkedCollection(collection: unknown): string {
  if (!isText(collection) || collection === '' || collection.length > limits.collectionNameMax)
    throw refuse('collection', `a text of 1 to ${limits.collectionNameMax} characters`)
  return collection
}

export function checkedSpec({
  languages = ['en'],
  dimensions = 0,
  fields = {},
}: CollectionSpec): Spec {
  if (
    !Array.isArray(languages) ||
    languages.length < 1 ||
    languages.length > limits.languagesMax ||
    !languages.every(isLanguage)
  )
    throw refuse('languages', `a list of 1 to ${limits.languagesMax} known languages`)
  within('dimensions', dimensions, 0, limits.dimensionsMax)
  const entries = Object.entries(fields)
  if (entries.length > limits.fieldsMax) throw refuse('fields', `at most ${limits.fieldsMax}`)
  for (const [name, kind] of entries) {
    if (!namePattern.test(name) || name.length > 64 || name === 'id')
      throw refuse(
        `fields.${name}`.slice(0, 80),
        'a name is a lower-case letter, then letters, digits and underscores, and not id',
      )
    if (!kinds.includes(kind))
      throw refuse(`fields.${name}`, `its type is one of ${kinds.join(', ')}`)
  }
  return { languages: [...new Set(languages)], dimensions, fields: { ...fields } }
}
/** Independent of the order in which a store returns the parts. */
const written = ({ languages, dimensions, fields }: Spec) =>
  JSON.stringify([
    languages,
    dimensions,
    Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)),
  ])
export const sameSpec = (a: Spec, b: Spec): boolean => written(a) === written(b)

function checkedFields(fields: Fields, declared: Kinds, field: string): Fields {
  for (const name in fields) {
    const kind = Object.hasOwn(declared, name) ? declared[name] : undefined
    const value = fields[name]
    if (kind === undefined)
      throw refuse(
        `${field}.fields`,
        `holds ${JSON.stringify(name.slice(0, 64))}, which the collection does not declare`,
      )
    if (typeof value !== kind || (kind === 'number' && !Number.isFinite(value)))
      throw refuse(`${field}.fields.${name}`, `must be a ${kind}`)
    if (kind === 'string' && (!isText(value) || bytesOf(value) > limits.fieldBytesMax))
      throw refuse(
        `${field}.fields.${name}`,
        `must be a text of at most ${limits.fieldBytesMax} bytes`,
      )
  }
  return { ...fields }
}

/** What is kept of a passage. */
export type Kept = {
  readonly at: number
  readonly id: string
  readonly text: string
  readonly language: Language | undefined
  readonly vector: readonly number[] | undefined
  readonly fields: Fields
}
function checkedPassage(passage: Passage, at: number, spec: Spec, collection: string): Kept {
  const field = `passages[${at}]`
  if (typeof passage !== 'object' || passage === null) throw refuse(field, 'must be a passage')
  const { id, text, language, vector, fields = {} } = passage
  checkedId(id, `${field}.id`)
  if (!isText(text)) throw refuse(`${field}.text`, 'must be a text')
  if (bytesOf(text) > limits.textBytesMax)
    throw fault('DOCUMENT_TOO_LARGE', { collection, max: limits.textBytesMax })
  if (language !== undefined && !spec.languages.includes(language))
    throw refuse(
      `${field}.language`,
      `must be one of the collection's: ${spec.languages.join(', ')}`,
    )
  return {
    at,
    id,
    text,
    language,
    vector: vector === undefined ? undefined : unit(vector, spec.dimensions, `${field}.vector`),
    fields: checkedFields(fields, spec.fields, field),
  }
}

/** INVALID_FIELD when it is more than one call may carry. */
export function checkBatch(passages: readonly Passage[]): void {
  if (!Array.isArray(passages) || passages.length > limits.batchPassagesMax)
    throw refuse('passages', `a list of at most ${limits.batchPassagesMax}`)
  let bytes = 0
  for (const passage of passages as (Passage | undefined)[])
    bytes +=
      (typeof passage?.text === 'string' ? bytesOf(passage.text) : 0) +
      4 * (passage?.vector?.length ?? 0)
  if (bytes > limits.batchBytesMax)
    throw refuse(
      'passages',
      `at most ${limits.batchBytesMax} bytes of text and vectors in one call`,
    )
}

/** Splits passages into valid ones, the last of each id, and invalid ones with their errors. */
export function sorted(
  passages: readonly Passage[],
  spec: Spec,
  collection: string,
): { good: Kept[]; indexed: number; errors: ItemError[] } {
  const good = new Map<string, Kept>()
  const errors: ItemError[] = []
  let indexed = 0
  for (const [at, passage] of passages.entries()) {
    try {
      const kept = checkedPassage(passage, at, spec, collection)
      good.delete(kept.id)
      good.set(kept.id, kept)
      indexed++
    } catch (error) {
      if (!isFault(error)) throw error
      errors.push({
        at,
        id: String((passage as Passage | undefined)?.id ?? '').slice(0, limits.idBytesMax),
        error,
      })
    }
  }
  return { good: [...good.values()], indexed, errors }
}

export function checkedIds(ids: readonly string[]): string[] {
  if (!Array.isArray(ids) || ids.length > limits.batchPassagesMax)
    throw refuse('ids', `a list of at most ${limits.batchPassagesMax}`)
  return [...new Set(ids.map((id, at) => checkedId(id, `ids[${at}]`)))]
}

/** One page of a collection. `after` is '' for the first page, which is no valid id. */
export type Paged = { readonly after: string; readonly limit: number }
export const checkedPage = ({
  after = '',
  limit,
}: {
  readonly after?: string
  readonly limit: number
}): Paged => ({ after, limit: within('limit', limit, 1, limits.batchPassagesMax) })

const valuesOf = (condition: Where[string]): readonly unknown[] =>
  typeof condition !== 'object' ? [condition] : Object.values(condition).flat()
export function checkedWhere(where: Where, { fields }: Spec): Where {
  checkWhere(where)
  const entries = Object.entries(where)
  if (entries.length > limits.whereConditionsMax)
    throw refuse('where', `at most ${limits.whereConditionsMax} conditions`)
  for (const [name, condition] of entries) {
    const kind = name === 'id' ? 'string' : Object.hasOwn(fields, name) ? fields[name] : undefined
    if (kind === undefined) throw refuse(name, 'the collection declares no such field')
    const values = valuesOf(condition)
    const isExists = typeof condition === 'object' && 'exists' in condition
    if (values.length > limits.whereValuesMax)
      throw refuse(name, `at most ${limits.whereValuesMax} values`)
    if (
      values.some(
        value =>
          typeof value === 'string' && (!isText(value) || bytesOf(value) > limits.fieldBytesMax),
      )
    )
      throw refuse(name, `must be a text of at most ${limits.fieldBytesMax} bytes`)
    // Without this check, one adapter would find nothing, and another would turn the text into a
    // number.
    if (!isExists && values.some(value => typeof value !== kind))
      throw refuse(name, `is compared with a ${kind}`)
  }
  return where
}

export function checkedQuery(query: SearchQuery, spec: Spec): CheckedQuery {
  const { text, vector, where = {}, limit = 10, offset = 0, cosineMin = -1 } = query
  const mode =
    query.mode ?? (text === undefined ? 'vector' : vector === undefined ? 'lexical' : 'hybrid')
  if (!['lexical', 'vector', 'hybrid'].includes(mode))
    throw refuse('mode', 'one of lexical, vector, hybrid')
  if (text !== undefined && !isText(text)) throw refuse('text', 'must be a text')
  if (mode !== 'vector' && text === undefined) throw refuse('text', `is needed for ${mode}`)
  if (text !== undefined && text.length > limits.queryCharactersMax)
    throw refuse('text', `at most ${limits.queryCharactersMax} characters`)
  if (mode !== 'lexical' && vector === undefined) throw refuse('vector', `is needed for ${mode}`)
  within('limit', limit, 1, limits.limitMax)
  within('offset', offset, 0, limits.depthMax - 1)
  if (offset + limit > limits.depthMax)
    throw refuse('offset', `with limit at most ${limits.depthMax}`)
  if (!(cosineMin >= -1 && cosineMin <= 1)) throw refuse('cosineMin', 'a number from -1 to 1')
  return {
    mode,
    text: text ?? '',
    vector: mode === 'lexical' ? [] : unit(vector!, spec.dimensions, 'vector'),
    where: checkedWhere(where, spec),
    limit,
    offset,
    cosineMin,
  }
}
export type CheckedMatch = {
  readonly text: string
  readonly where: Where
  readonly before: string | undefined
  readonly limit: number
}
export function checkedMatch(
  { text, where = {}, before, limit = 10 }: MatchQuery,
  spec: Spec,
): CheckedMatch {
  if (!isText(text)) throw refuse('text', 'must be a text')
  if (text.length > limits.queryCharactersMax)
    throw refuse('text', `at most ${limits.queryCharactersMax} characters`)
  within('limit', limit, 1, limits.limitMax)
  return {
    text,
    where: checkedWhere(where, spec),
    before: before === undefined ? undefined : checkedId(before, 'before'),
    limit,
  }
}
/** A field that is no longer declared, or now has another type, is left out. */
export const keptFields = (fields: Fields, { fields: declared }: Spec): Fields =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([name, value]) => Object.hasOwn(declared, name) && typeof value === declared[name],
    ),
  )
/** The language that a passage's owner named, where the collection still has it. */
export const saidLanguage = (
  said: Language | null | undefined,
  { languages }: Spec,
): Language | undefined => (said && languages.includes(said) ? said : undefined)
export const notFound = (): Fault => fault('NOT_FOUND', { what: 'collection' })
