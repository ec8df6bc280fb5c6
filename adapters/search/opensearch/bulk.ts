// Writes many passages: in parts by bytes, with a few calls at a time. Refused parts are tried
// again, and errors are reported for each passage.
import { fault, type Fault } from '#contracts/faults.ts'
import type { Language } from '#ports/search.ts'
import type { Fields } from '../lib/specs.ts'
import {
  isBusy,
  refusalOf,
  toFault,
  unavailable,
  type Connection,
  type Refusal,
} from './connection.ts'

/** A document as it is stored. Each write gives it a new `stamp`. */
export type Stored = {
  readonly id: string
  readonly text: string
  readonly language: Language
  readonly said?: Language
  readonly terms: string
  readonly vector?: readonly number[]
  readonly fields: Fields
  readonly stamp: string
}
export type Write = { readonly put: Stored } | { readonly remove: string }
export type Written = {
  /** Generations that the writes went to. */ readonly indexes: ReadonlySet<string>
  readonly errors: ReadonlyMap<string, Fault>
  /** How many removals found a passage. */
  readonly removed: number
}
type Item = {
  readonly _id: string
  readonly _index: string
  readonly status: number
  readonly result?: string
  readonly error?: unknown
}

const bytesMax = 4_194_304
const writesMax = 500
const callsMax = 4
const triesMax = 8
/**
 * Tries of a write that waits for an exchange of generations. After these tries no process works on
 * it any more.
 */
const blockedTriesMax = 30

const idOf = (write: Write) => ('put' in write ? write.put.id : write.remove)
export const isBlocked = ({ type, reason }: Refusal): boolean =>
  type === 'cluster_block_exception' && reason.includes('index write')
const isGone = ({ type, reason }: Refusal) =>
  type === 'index_not_found_exception' ||
  (type === 'illegal_argument_exception' && reason.includes('require_alias'))

function* parts(writes: readonly Write[]): Generator<Write[]> {
  let part: Write[] = []
  let bytes = 0
  for (const write of writes) {
    const size =
      'put' in write ? 4 * write.put.text.length + 20 * (write.put.vector?.length ?? 0) : 0
    if (part.length >= writesMax || (part.length > 0 && bytes + size > bytesMax)) {
      yield part
      part = []
      bytes = 0
    }
    part.push(write)
    bytes += size
  }
  if (part.length > 0) yield part
}

export function createBulk({ call, pause }: Connection) {
  // A turn lasts one call. Waiting for another try holds no turn, so that writes which wait for an
  // exchange do not block its copying.
  let running = 0
  const waiting: (() => void)[] = []
  const inTurn = async <T>(act: () => Promise<T>): Promise<T> => {
    if (running >= callsMax) await new Promise<void>(resolve => waiting.push(resolve))
    else running++
    try {
      return await act()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
  const send = async (
    alias: string,
    part: readonly Write[],
    signal: AbortSignal | undefined,
  ): Promise<Item[]> => {
    const lines = part.flatMap((write): object[] =>
      'put' in write
        ? [{ index: { _id: write.put.id } }, write.put]
        : [{ delete: { _id: write.remove } }],
    )
    const { items } = await call<{ items: Record<string, Item>[] }>('POST', `/${alias}/_bulk`, {
      lines,
      query: { require_alias: true },
      signal,
    })
    return items.map(item => Object.values(item)[0]!)
  }

  /** Writes; queries see the result only after `refresh`. NOT_FOUND when there is no such alias. */
  return async (
    alias: string,
    writes: readonly Write[],
    signal?: AbortSignal,
  ): Promise<Written> => {
    const indexes = new Set<string>()
    const errors = new Map<string, Fault>()
    let removed = 0
    const write = async (part: readonly Write[]) => {
      let left = part
      for (let attempt = 1, blocked = 1; left.length > 0; ) {
        const again: Write[] = []
        const refusals: Refusal[] = []
        for (const [at, { _index, status, result, error }] of (
          await inTurn(() => send(alias, left, signal))
        ).entries()) {
          if (error === undefined) {
            indexes.add(_index)
            if (result === 'deleted') removed++
            continue
          }
          const refusal = refusalOf(status, error)
          if (isGone(refusal)) throw fault('NOT_FOUND', { what: 'collection' })
          if (!isBusy(refusal) && !isBlocked(refusal)) errors.set(idOf(left[at]!), toFault(refusal))
          else {
            refusals.push(refusal)
            again.push(left[at]!)
          }
        }
        left = again
        if (left.length === 0) return
        const waits = refusals.every(isBlocked)
        if (waits ? blocked++ >= blockedTriesMax : attempt++ >= triesMax) {
          for (const one of left)
            errors.set(
              idOf(one),
              unavailable(waits ? 'the collection is being changed' : 'it has too much to do'),
            )
          return
        }
        await pause(waits ? 2 : attempt, signal)
      }
    }
    await Promise.all(Array.from(parts(writes), write))
    return { indexes, errors, removed }
  }
}
