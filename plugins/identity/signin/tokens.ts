// Access tokens: JWT (RFC 7519), HS256, fifteen minutes.
import jwt from 'jsonwebtoken'
import type { Caller } from '#contracts/contract.ts'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { createBoundedMap } from './bounded-map.ts'
import { accessTokenSeconds } from '../config.ts'
import type { State, UserStatusCache } from '../accounts/user-status-cache.ts'

/** `familyId` is absent in a token that an API key was exchanged for. */
export type Claims = {
  readonly userId: string
  readonly orgId: string
  readonly role: string
  readonly version: number
  readonly familyId?: string
}
type Verified = Claims & { readonly expiresAt: number }

const verifiedMax = 20_000
const bearerPattern = /^Bearer +(\S+) *$/i

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export function createTokens({
  secret,
  clock,
  states,
}: {
  secret: string
  clock: Clock
  states: UserStatusCache
}) {
  // Caches checked signatures, because a look-up costs a hundredth of a check.
  const verified = createBoundedMap<Verified>(verifiedMax)
  const seconds = (): number => Math.floor(clock.now() / 1000)

  const verify = (token: string): Verified | undefined => {
    try {
      const payload = jwt.verify(token, secret, {
        algorithms: ['HS256'],
        clockTimestamp: seconds(),
      })
      if (
        typeof payload === 'string' ||
        typeof payload.exp !== 'number' ||
        typeof payload['ver'] !== 'number'
      )
        return undefined
      const familyId = payload['sid']
      return {
        userId: textOf(payload.sub),
        orgId: textOf(payload['org']),
        role: textOf(payload['role']),
        version: payload['ver'],
        expiresAt: payload.exp * 1000,
        ...(typeof familyId === 'string' ? { familyId } : {}),
      }
    } catch {
      // Malformed, expired or signed by another: all of them are no token of ours.
      return undefined
    }
  }
  const claimsOf = (authorization: string | undefined): Claims | undefined => {
    const token = bearerPattern.exec(authorization ?? '')?.[1]
    if (token === undefined) return undefined
    const known = verified.get(token)
    if (known !== undefined && known.expiresAt > clock.now()) return known
    verified.delete(token)
    const claims = verify(token)
    if (claims !== undefined) verified.set(token, claims)
    return claims
  }
  /** The role is the member's of today, not the token's. */
  const callerOf = (
    { userId, orgId, version }: Claims,
    state: State | undefined,
  ): Caller | undefined => {
    const role = state?.roles[orgId]
    if (state === undefined || state.version !== version || role === undefined) return undefined
    if (state.suspended) throw fault('ACCOUNT_SUSPENDED')
    return { userId, orgId, role }
  }
  return {
    claimsOf,
    issue({ userId, orgId, role, version, familyId }: Claims): string {
      const iat = seconds()
      return jwt.sign(
        {
          sub: userId,
          org: orgId,
          role,
          ver: version,
          jti: clock.id(),
          iat,
          exp: iat + accessTokenSeconds,
          ...(familyId === undefined ? {} : { sid: familyId }),
        },
        secret,
        { algorithm: 'HS256' },
      )
    },
    /**
     * ACCOUNT_SUSPENDED for a token of a suspended user; undefined for everything that is no valid
     * token.
     */
    authenticate(
      authorization: string | undefined,
    ): Caller | undefined | Promise<Caller | undefined> {
      const claims = claimsOf(authorization)
      if (claims === undefined) return undefined
      const state = states.of(claims.userId)
      return state instanceof Promise
        ? state.then(found => callerOf(claims, found))
        : callerOf(claims, state)
    },
  }
}
export type Tokens = ReturnType<typeof createTokens>
