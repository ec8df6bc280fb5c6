// Sign-ins: a family of refresh tokens, each good for one use, kept as hashes.
import { createHash } from 'node:crypto'
import type { AccessToken, SignedIn } from '#contracts/identity.ts'
import { fault, type Fault } from '#contracts/faults.ts'
import { addressGroup } from '#ports/address.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Families, reasons, RefreshTokens, type Family, type RefreshToken } from '../collections.ts'
import { accessTokenSeconds, refreshGraceMs, refreshTokenMs } from '../config.ts'
import type { UserStatusCache } from '../accounts/user-status-cache.ts'
import type { Claims, Tokens } from './tokens.ts'

const tokenBytes = 32
const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

export const bearer = (accessToken: string): AccessToken => ({
  access_token: accessToken,
  token_type: 'Bearer',
  expires_in: accessTokenSeconds,
})

type Deps = {
  store: ScopedStorage
  clock: Clock
  limits: RateLimiter
  rates: Readonly<Record<string, Rate>>
  tokens: Tokens
  states: UserStatusCache
}

export function createSessions({ store, clock, limits, rates, tokens, states }: Deps) {
  const sessions = store.system(reasons.sessions)

  const pair = async ({ id, userId, orgId, version }: Family, role: string): Promise<SignedIn> => {
    const token = Buffer.from(clock.randomBytes(tokenBytes)).toString('base64url')
    await sessions.insert(RefreshTokens, {
      id: clock.id(),
      hash: hashOf(token),
      familyId: id,
      userId,
      expiresAt: clock.now() + refreshTokenMs,
    })
    return {
      ...bearer(tokens.issue({ userId, orgId, role, version, familyId: id })),
      refresh_token: token,
    }
  }
  const find = async (token: string): Promise<RefreshToken | undefined> =>
    (await sessions.find(RefreshTokens, { where: { hash: hashOf(token) }, limit: 1 })).items[0]
  const end = async (familyId: string, userId?: string): Promise<void> => {
    await sessions.update(
      Families,
      familyId,
      { set: { revokedAt: clock.now() } },
      { if: { revokedAt: { exists: false }, ...(userId === undefined ? {} : { userId }) } },
    )
  }

  /** Tokens are too long to be guessed. This limit bounds the work that strangers cause. */
  const refusal = async (address: string): Promise<Fault> => {
    const waitMs = await limits.take(
      'refresh_address',
      addressGroup(address),
      rates['refresh_address']!,
    )
    if (waitMs === 0) return fault('REFRESH_INVALID')
    return fault(
      'RATE_LIMITED',
      { limit: 'refresh_address', seconds: Math.ceil(waitMs / 1000) },
      { retryAfterMs: waitMs },
    )
  }

  /** True when this call is the token's first use, or one that raced with it. */
  const use = async ({ id }: RefreshToken): Promise<boolean> => {
    const now = clock.now()
    if (
      (await sessions.update(
        RefreshTokens,
        id,
        { set: { usedAt: now } },
        { if: { usedAt: { exists: false } } },
      )) !== undefined
    )
      return true
    const used = await sessions.get(RefreshTokens, id)
    return used?.usedAt !== undefined && now - used.usedAt <= refreshGraceMs
  }
  return {
    async open({ userId, orgId, role, version }: Omit<Claims, 'familyId'>): Promise<SignedIn> {
      const family: Family = {
        id: clock.id(),
        userId,
        orgId,
        version,
        createdAt: clock.now(),
        expiresAt: clock.now() + refreshTokenMs,
      }
      await sessions.insert(Families, family)
      return pair(family, role)
    },

    /** REFRESH_INVALID unless the token is the last one of a living sign-in. */
    async refresh(token: string, address: string): Promise<SignedIn> {
      const known = await find(token)
      if (known === undefined || known.expiresAt <= clock.now()) throw await refusal(address)
      const [before, state] = await Promise.all([
        sessions.get(Families, known.familyId),
        states.fresh(known.userId),
      ])
      const role = before === undefined ? undefined : state?.roles[before.orgId]
      if (before === undefined || role === undefined || state?.version !== before.version)
        throw fault('REFRESH_INVALID')
      if (state.suspended) throw fault('ACCOUNT_SUSPENDED')
      if (!(await use(known))) {
        // The token was used again too late, so a thief has a copy. Nobody knows who, so the
        // sign-in ends.
        await end(known.familyId)
        throw fault('REFRESH_INVALID')
      }
      const family = await sessions.update(
        Families,
        known.familyId,
        { set: { expiresAt: clock.now() + refreshTokenMs } },
        { if: { revokedAt: { exists: false } } },
      )
      if (family === undefined) throw fault('REFRESH_INVALID')
      return pair(family, role)
    },

    /** Whose the token is or was, also when it has been used or its sign-in has ended. */
    async familyOf(
      token: string | undefined,
    ): Promise<{ userId: string; familyId: string } | undefined> {
      return token === undefined ? undefined : find(token)
    },

    /**
     * Ends the sign-in of the token, and that of the refresh token where it is the same user's.
     * Nothing to end is no error.
     */
    async close(
      userId: string,
      {
        familyId,
        refreshToken,
      }: { familyId?: string | undefined; refreshToken?: string | undefined },
    ): Promise<void> {
      if (familyId !== undefined) await end(familyId, userId)
      const known = refreshToken === undefined ? undefined : await find(refreshToken)
      if (known !== undefined) await end(known.familyId, userId)
    },
  }
}
export type Sessions = ReturnType<typeof createSessions>
