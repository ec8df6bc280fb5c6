// The checks of passages, each refused in the same words by every adapter.
import { fault, isFault } from '#contracts/faults.ts'
import {
  searchLimits as limits,
  type ItemError,
  type Language,
  type Passage,
} from '#ports/search.ts'
import type { Fields, Kinds, Spec } from './specs.ts'
import { bytesOf, checkedId, isText, refuse, within } from './values.ts'
import { unit } from './vectors.ts'

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
