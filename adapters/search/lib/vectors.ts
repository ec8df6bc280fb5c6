// Vectors of length 1, in single precision.
import { refuse } from './values.ts'

/** Each number in single precision may be off by 2^-24 of itself, and so may a length of 1. */
const unitOff = 2 ** -23
/** Scales a vector to length 1, so that a dot product is the cosine. */
export function unit(vector: readonly number[], dimensions: number, field: string): number[] {
  if (dimensions === 0) throw refuse(field, 'the collection declares no dimensions')
  if (!Array.isArray(vector) || vector.length !== dimensions)
    throw refuse(field, `must hold ${dimensions} numbers`)
  if (!vector.every(number => Number.isFinite(number)))
    throw refuse(field, 'must hold finite numbers only')
  // Numbers are scaled before they are squared, so that very large and very small ones survive.
  const most = vector.reduce((max, number) => Math.max(max, Math.abs(number)), 0)
  if (most === 0) throw refuse(field, 'must not be 0 in all dimensions')
  const scaled = vector.map(number => number / most)
  const length = Math.sqrt(scaled.reduce((sum, number) => sum + number * number, 0))
  // The vector has length 1 already, as from an index. Scaling it again would change it a little
  // each time.
  if (
    Math.abs(most * length - 1) <= unitOff &&
    vector.every(number => Math.fround(number) === number)
  )
    return [...vector]
  return scaled.map(number => number / length)
}
/** The vector in single precision, as an index holds it. */
export const single = (vector: readonly number[]): number[] => vector.map(Math.fround)
