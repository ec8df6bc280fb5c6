// The checks of a collection: its name and its specification.
import { fault, type Fault } from '#contracts/faults.ts'
import { searchLimits as limits, type CollectionSpec, type Language } from '#ports/search.ts'
import type { Scalar } from '#ports/storage.ts'
import { isLanguage } from '../analysis/languages.ts'
import { isText, refuse, within } from './values.ts'

export type Fields = Readonly<Record<string, Scalar>>
export type Kinds = NonNullable<CollectionSpec['fields']>
/** A specification with its defaults. Two specifications that mean the same have the same form. */
export type Spec = {
  readonly languages: readonly Language[]
  readonly dimensions: number
  readonly fields: Kinds
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
