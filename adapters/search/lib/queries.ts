// The checks of queries and of their filters, each refused in the same words by every adapter.
import { searchLimits as limits, type MatchQuery, type SearchQuery } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import { checkWhere } from '../../_shared/documents.ts'
import type { Spec } from './specs.ts'
import { bytesOf, checkedId, isText, refuse, within } from './values.ts'
import { unit } from './vectors.ts'

export type CheckedQuery = {
  readonly mode: 'lexical' | 'vector' | 'hybrid'
  readonly text: string
  readonly vector: readonly number[]
  readonly where: Where
  readonly limit: number
  readonly offset: number
  readonly cosineMin: number
}

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
