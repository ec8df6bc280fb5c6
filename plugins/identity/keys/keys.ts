// API keys: shown once, kept as SHA-256, exchanged for access tokens.
import { createHash } from 'node:crypto'
import { activeKeysMax, type ApiKey, type CreatedApiKey } from '#contracts/api-keys.ts'
import type { Caller } from '#contracts/contract.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import type { AccessToken } from '#contracts/identity.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Keys, reasons, type Key } from '../collections.ts'
import { keyUseMs, revokedKeyMs } from '../config.ts'
import { bearer } from '../signin/sessions.ts'
import type { UserStatusCache } from '../accounts/user-status-cache.ts'
import type { Tokens } from '../signin/tokens.ts'

const keyPrefix = 'sk_live_'
const secretBytes = 32
const shownChars = keyPrefix.length + 6
const keyPattern = /^sk_live_[A-Za-z0-9_-]{43}$/
const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex')
const iso = (ms: number): string => new Date(ms).toISOString()

const wire = ({ id, name, prefix, createdAt, lastUsedAt }: Key): ApiKey => ({
  id,
  name,
  prefix,
  created_at: iso(createdAt),
  last_used_at: lastUsedAt === undefined ? null : iso(lastUsedAt),
})

/**
 * Finds the key in the three places where it may stand. The first that looks like a key counts,
 * else the first that is present. A gateway may send a bearer token of its own beside the key.
 */
export function keyIn({
  headers,
  body,
}: {
  headers: Readonly<Record<string, string | undefined>>
  body: { readonly api_key?: string } | undefined
}): string | undefined {
  const bearerKey = /^Bearer +(\S+) *$/i.exec(headers['authorization'] ?? '')?.[1]
  const found = [headers['x-api-key']?.trim(), bearerKey, body?.api_key?.trim()]
  return found.find(text => text?.startsWith(keyPrefix)) ?? found.find(text => text !== undefined)
}

export function createKeys({
  store,
  clock,
  tokens,
  states,
}: {
  store: ScopedStorage
  clock: Clock
  tokens: Tokens
  states: UserStatusCache
}) {
  const everyones = store.system(reasons.keys)

  /** Takes the lowest free slot; a slot that another call took meanwhile is passed over. */
  const place = async (within: Store, key: Omit<Key, 'slot'>): Promise<void> => {
    const { items } = await everyones.find(Keys, {
      where: { userId: key.userId, active: true },
      limit: activeKeysMax,
    })
    const taken = new Set(items.map(({ slot }) => slot))
    for (let slot = 1; slot <= activeKeysMax; slot++) {
      if (taken.has(slot)) continue
      try {
        return await within.insert(Keys, { ...key, slot })
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
      }
    }
    throw fault('KEYS_EXHAUSTED', { max: activeKeysMax })
  }
  const revocation = () => ({
    set: { active: false, expiresAt: clock.now() + revokedKeyMs },
    unset: ['slot'],
  })
  /**
   * Ends the keys of earlier token versions: they can be exchanged no more, and should hold no
   * slot.
   */
  const endOlder = (userId: string, version: number): Promise<number> =>
    everyones.updateMany(Keys, { userId, active: true, version: { lt: version } }, revocation())

  return {
    endOlder,
    async create(caller: Caller, name: string): Promise<CreatedApiKey> {
      const version = (await states.fresh(caller.userId))?.version
      if (version === undefined) throw fault('UNAUTHENTICATED')
      await endOlder(caller.userId, version)
      const secret = keyPrefix + Buffer.from(clock.randomBytes(secretBytes)).toString('base64url')
      const key = {
        id: clock.id(),
        orgId: caller.orgId,
        userId: caller.userId,
        name,
        prefix: secret.slice(0, shownChars),
        hash: hashOf(secret),
        version,
        active: true,
        createdAt: clock.now(),
      }
      await place(store.tenant(caller), key)
      return { ...wire(key), secret }
    },

    async list(
      caller: Caller,
      { limit, cursor }: { limit?: number; cursor?: string },
    ): Promise<{ items: ApiKey[]; next_cursor?: string }> {
      const version = (await states.fresh(caller.userId))?.version ?? 0
      const { items, next } = await store.tenant(caller).find(Keys, {
        where: { userId: caller.userId, active: true, version },
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { after: cursor }),
      })
      return { items: items.map(wire), ...(next === undefined ? {} : { next_cursor: next }) }
    },

    async revoke(caller: Caller, id: string): Promise<void> {
      const revoked = await store
        .tenant(caller)
        .update(Keys, id, revocation(), { if: { userId: caller.userId, active: true } })
      if (revoked === undefined) throw fault('NOT_FOUND', { what: 'API key' })
    },

    /**
     * Reads the key and its user from storage each time: a revocation or a suspension counts from
     * the next exchange on.
     */
    async exchange(secret: string | undefined): Promise<AccessToken> {
      if (secret === undefined || !keyPattern.test(secret)) throw fault('KEY_INVALID')
      const key = (
        await everyones.find(Keys, { where: { hash: hashOf(secret), active: true }, limit: 1 })
      ).items[0]
      if (key === undefined) throw fault('KEY_INVALID')
      const state = await states.fresh(key.userId)
      const role = state?.roles[key.orgId]
      if (state === undefined || state.version !== key.version || role === undefined)
        throw fault('KEY_INVALID')
      if (state.suspended) throw fault('ACCOUNT_SUSPENDED')
      const now = clock.now()
      if (now - (key.lastUsedAt ?? 0) >= keyUseMs)
        await store.tenant(key).update(Keys, key.id, { set: { lastUsedAt: now } })
      return bearer(
        tokens.issue({ userId: key.userId, orgId: key.orgId, role, version: key.version }),
      )
    },
  }
}
export type KeysService = ReturnType<typeof createKeys>
