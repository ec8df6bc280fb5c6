// How entries are stored.
import type { Entry } from '#ports/billing.ts'
import { collection } from '#ports/storage.ts'

export type Row = Entry & { readonly id: string; readonly orgId: string }

export const entries = collection<Row>({
  name: 'ledger',
  scope: 'tenant',
  unique: [
    ['orgId', 'seq'],
    ['orgId', 'key'],
  ],
})

export const entryOf = ({
  seq,
  key,
  kind,
  amount,
  held,
  balanceAfter,
  heldAfter,
  reason,
  at,
}: Row): Entry => ({ seq, key, kind, amount, held, balanceAfter, heldAfter, reason, at })

/** Of the entries of one organisation, so many are read or written at once. */
export const batchMax = 200
