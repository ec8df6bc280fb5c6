// Keeps memos, each of one user of one organisation.
import { fault, type Caller } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import { collection, type ScopedStorage } from '#ports/storage.ts'

export type Memo = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly text: string
  readonly createdAt: number
}
export const Memos = collection<Memo>({
  name: 'memos',
  scope: 'tenant',
  owner: 'userId',
  index: [['orgId', 'userId', 'createdAt']],
})

const shown = ({ id, text, createdAt }: Memo) => ({
  id,
  text,
  created_at: new Date(createdAt).toISOString(),
})

export function createMemos({ store, clock }: { store: ScopedStorage; clock: Clock }) {
  /** NOT_FOUND unless it is the caller's. */
  const find = async (caller: Caller, id: string): Promise<Memo> => {
    const memo = await store.tenant(caller).get(Memos, id)
    if (!memo || memo.userId !== caller.userId) throw fault('NOT_FOUND', { what: 'memo' })
    return memo
  }
  return {
    async create(caller: Caller, text: string) {
      const memo: Memo = {
        id: clock.id(),
        orgId: caller.orgId,
        userId: caller.userId,
        text,
        createdAt: clock.now(),
      }
      await store.tenant(caller).insert(Memos, memo)
      return shown(memo)
    },
    async list(caller: Caller, { limit = 50, cursor }: { limit?: number; cursor?: string }) {
      const { items, next } = await store.tenant(caller).find(Memos, {
        where: { userId: caller.userId },
        orderBy: ['createdAt', 'desc'],
        limit,
        ...(cursor === undefined ? {} : { after: cursor }),
      })
      return { items: items.map(shown), ...(next === undefined ? {} : { next_cursor: next }) }
    },
    read: async (caller: Caller, id: string) => shown(await find(caller, id)),
    async remove(caller: Caller, id: string): Promise<void> {
      await find(caller, id)
      await store.tenant(caller).remove(Memos, id)
    },
  }
}
