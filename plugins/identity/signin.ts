// Signing in with a password, and changing it. Guesses are bounded per account, whether it exists or not.
import type { Caller } from '#contracts/contract.ts'
import type { SignedIn } from '#contracts/identity.ts'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { reasons, Users, type User } from './collections.ts'
import type { KeysService } from './keys.ts'
import { lanes, type Lanes } from './lanes.ts'
import type { Passwords } from './passwords.ts'
import type { Sessions } from './sessions.ts'
import type { States } from './states.ts'
import { normalEmail, type UsersService } from './users.ts'

const WAITING_MAX = 50

type Deps = { store: ScopedStorage; clock: Clock; limits: RateLimiter; rates: Readonly<Record<string, Rate>>; passwords: Passwords; users: UsersService; sessions: Sessions; keys: KeysService; states: States }

export function createSignIn({ store, limits, rates, passwords, users, sessions, keys, states }: Deps) {
  const people = store.system(reasons.people)
  const lines = new Map<string, { readonly lane: Lanes; inside: number }>()
  const throttled = (waitMs: number) => fault('LOGIN_THROTTLED', { seconds: Math.ceil(waitMs / 1000) }, { retryAfterMs: waitMs })

  /** One at a time for an account: else right passwords at the same moment would count as guesses until the first is found right. */
  const inLine = async <T>(email: string, work: () => Promise<T>): Promise<T> => {
    const line = lines.get(email) ?? { lane: lanes({ atOnce: 1, waitingMax: WAITING_MAX, refuse: () => throttled(1000) }), inside: 0 }
    lines.set(email, line)
    line.inside++
    try {
      return await line.lane(work)
    } finally {
      if (--line.inside === 0) lines.delete(email)
    }
  }
  /** Each try is counted before it is judged, and a right one clears the count. */
  const judge = (email: string, password: string, hash: () => Promise<string | undefined>): Promise<boolean> =>
    inLine(email, async () => {
      const waitMs = await limits.take('login', email, rates['login']!)
      if (waitMs > 0) throw throttled(waitMs)
      const right = await passwords.matches(password, await hash())
      if (right) await limits.reset('login', email)
      return right
    })

  const open = async (user: User): Promise<SignedIn> => {
    const { id: userId, orgId: preferred, version } = await users.settle(user)
    const roles = (await states.fresh(userId))?.roles ?? {}
    const orgId = preferred in roles ? preferred : Object.keys(roles)[0]
    if (orgId === undefined) throw fault('FORBIDDEN', { why: 'this account belongs to no organisation' })
    return sessions.open({ userId, orgId, role: roles[orgId]!, version })
  }
  return {
    open,
    async login({ email: given, password }: { email: string; password: string }): Promise<SignedIn> {
      const email = normalEmail(given)
      let user: User | undefined
      const right = await judge(email, password, async () => (user = await users.byEmail(email))?.passwordHash)
      if (!right || user === undefined) throw fault('CREDENTIALS_INVALID')
      if (!user.verified) throw fault('EMAIL_UNVERIFIED')
      if (user.suspended) throw fault('ACCOUNT_SUSPENDED')
      return open(user)
    },

    /** Ends every session and key by a higher token version, then opens a session for whoever changed it. */
    async changePassword(caller: Caller, { current_password, new_password }: { current_password: string; new_password: string }): Promise<SignedIn> {
      const user = await people.get(Users, caller.userId)
      if (user === undefined) throw fault('UNAUTHENTICATED')
      if (!(await judge(user.email, current_password, async () => user.passwordHash))) throw fault('CREDENTIALS_INVALID')
      const passwordHash = await passwords.hash(new_password)
      const changed = await people.update(Users, user.id, { set: { passwordHash }, inc: { version: 1 } }, { if: { version: user.version, suspended: false } })
      states.forget(user.id)
      if (changed === undefined) throw fault('CONFLICT', { why: 'the account was changed meanwhile' })
      await keys.endOlder(user.id, changed.version)
      return sessions.open({ ...caller, version: changed.version })
    },
  }
}
export type SignIn = ReturnType<typeof createSignIn>
