// Signing in with a password, and changing it. Guesses are bounded whether the account exists or
// not.
import { createHmac } from 'node:crypto'
import type { Caller } from '#contracts/contract.ts'
import type { LoginRequest, PasswordChange, SignedIn } from '#contracts/identity.ts'
import { fault } from '#contracts/faults.ts'
import { addressGroup } from '#ports/address.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { reasons, Users, type User } from '../collections.ts'
import { networksKept } from '../config.ts'
import { createFairSemaphore } from '../passwords/fair-semaphore.ts'
import type { Bound, Guesses } from './guesses.ts'
import type { KeysService } from '../keys/keys.ts'
import type { Passwords } from '../passwords/passwords.ts'
import type { Sessions } from './sessions.ts'
import type { UserStatusCache } from '../accounts/user-status-cache.ts'
import { normalEmail, type UsersService } from '../accounts/users.ts'

/** Of tries at one account from one place, which take turns. */
const waitingMax = 1000

type Deps = {
  store: ScopedStorage
  clock: Clock
  guesses: Guesses
  passwords: Passwords
  secret: string
  users: UsersService
  sessions: Sessions
  keys: KeysService
  states: UserStatusCache
}
/**
 * Where a try comes from: its network, and the sign-in of the device, where it proves one of this
 * account.
 */
type Place = { readonly network: string; readonly familyId?: string | undefined }

export function createSignIn({
  store,
  guesses,
  passwords,
  secret,
  users,
  sessions,
  keys,
  states,
}: Deps) {
  const people = store.system(reasons.people)
  const refuse = () => fault('LOGIN_THROTTLED', { seconds: 1 }, { retryAfterMs: 1000 })
  const inTurn = createFairSemaphore({
    atOnce: waitingMax,
    atOncePerKey: 1,
    waitingMax: waitingMax,
    refuse,
  })
  /**
   * Networks are kept only to be recognised: under the secret, nobody reads addresses from them.
   */
  const markOf = (userId: string, network: string): string =>
    createHmac('sha256', secret)
      .update(`network\n${userId}\n${network}`)
      .digest('base64url')
      .slice(0, 22)

  /**
   * What a guess counts against. Guesses of others hold up neither a known device nor a known
   * network.
   */
  const boundsOf = (
    email: string,
    user: User | undefined,
    { network, familyId }: Place,
  ): readonly [Bound, ...Bound[]] => {
    if (familyId !== undefined) return [{ name: 'login', subject: `${email}\ndevice ${familyId}` }]
    const here: Bound = { name: 'login', subject: `${email}\n${network}` }
    const bounds: [Bound, ...Bound[]] = [here, { name: 'login_address', subject: network }]
    const isKnown = user?.networks?.includes(markOf(user.id, network)) ?? false
    return isKnown ? bounds : [...bounds, { name: 'login_account', subject: email }]
  }
  /**
   * One at a time for an account and a place: right passwords at the same moment are no guesses.
   */
  const isRight = (
    email: string,
    password: string,
    { user, place }: { user: User | undefined; place: Place },
  ): Promise<boolean> => {
    const bounds = boundsOf(email, user, place)
    const [own] = bounds
    return inTurn(own.subject, async () => {
      const matches = () => passwords.matches(password, user?.passwordHash, place.network)
      const right = await guesses.judged(bounds, matches)
      if (right) await guesses.forget(own)
      return right
    })
  }
  const remember = async (user: User, network: string): Promise<void> => {
    const mark = markOf(user.id, network)
    const known = user.networks ?? []
    if (known.includes(mark)) return
    await people.update(Users, user.id, {
      set: { networks: [mark, ...known].slice(0, networksKept) },
    })
  }

  const open = async (user: User, network: string): Promise<SignedIn> => {
    await remember(user, network)
    const { id: userId, orgId: preferred, version } = await users.settle(user)
    const roles = (await states.fresh(userId))?.roles ?? {}
    const orgId = preferred in roles ? preferred : Object.keys(roles)[0]
    if (orgId === undefined)
      throw fault('FORBIDDEN', { why: 'this account belongs to no organisation' })
    return sessions.open({ userId, orgId, role: roles[orgId]!, version })
  }
  return {
    open,
    async login(
      { email: given, password, refresh_token }: LoginRequest,
      address: string,
    ): Promise<SignedIn> {
      const email = normalEmail(given)
      const network = addressGroup(address)
      const [user, family] = await Promise.all([
        users.byEmail(email),
        sessions.familyOf(refresh_token),
      ])
      const familyId =
        family !== undefined && family.userId === user?.id ? family.familyId : undefined
      const right = await isRight(email, password, { user, place: { network, familyId } })
      if (!right || user === undefined) throw fault('CREDENTIALS_INVALID')
      if (!user.verified) throw fault('EMAIL_UNVERIFIED')
      if (user.suspended) throw fault('ACCOUNT_SUSPENDED')
      return open(user, network)
    },

    /**
     * Ends every session and key by a higher token version, then opens a session for whoever
     * changed it.
     */
    async changePassword(
      caller: Caller,
      { current_password, new_password }: PasswordChange,
      address: string,
    ): Promise<SignedIn> {
      const user = await people.get(Users, caller.userId)
      const network = addressGroup(address)
      if (user === undefined) throw fault('UNAUTHENTICATED')
      // An account without a password sets its first: whoever is signed in has proved the address
      // or holds a key.
      if (user.passwordHash !== undefined) {
        if (current_password === undefined)
          throw fault('INVALID_FIELD', { field: 'current_password', why: 'is missing' })
        if (!(await isRight(user.email, current_password, { user, place: { network } })))
          throw fault('PASSWORD_WRONG')
      }
      const passwordHash = await passwords.hash(new_password, network)
      const changed = await people.update(
        Users,
        user.id,
        { set: { passwordHash }, inc: { version: 1 } },
        { if: { version: user.version, suspended: false } },
      )
      states.forget(user.id)
      if (changed === undefined)
        throw fault('CONFLICT', { why: 'the account was changed meanwhile' })
      await keys.endOlder(user.id, changed.version)
      return sessions.open({ ...caller, version: changed.version })
    },
  }
}
export type SignIn = ReturnType<typeof createSignIn>
