// Registering: an address, a password, and the code that proves the address. Nothing here tells
// whether an address has an account.
import { timingSafeEqual } from 'node:crypto'
import type { Verified, VerifyRequest } from '#contracts/identity.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import { addressGroup } from '#ports/address.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import type { Mailer } from '#ports/mail.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { codeFields, reasons, Users, type User } from '../collections.ts'
import { codeMs, codeTriesMax, type IdentityConfig } from '../config.ts'
import type { Guesses } from '../signin/guesses.ts'
import { codeEmail, ownerEmail } from './emails.ts'
import type { Passwords } from '../passwords/passwords.ts'
import { createCodes, type Code } from './registration-codes.ts'
import type { SignIn } from '../signin/signin.ts'
import { normalEmail, type UsersService } from './users.ts'

type Deps = {
  store: ScopedStorage
  clock: Clock
  mail: Mailer
  limits: RateLimiter
  rates: Readonly<Record<string, Rate>>
  config: IdentityConfig
  secret: string
  guesses: Guesses
  passwords: Passwords
  users: UsersService
  signIn: SignIn
}
/** `isSame`: is the one that is pending this one? */
type GivenPassword = {
  readonly hash: string
  isSame(pending: string | undefined): Promise<boolean>
}

export function createRegistration({
  store,
  clock,
  mail,
  limits,
  rates,
  config,
  secret,
  guesses,
  passwords,
  users,
  signIn,
}: Deps) {
  const people = store.system(reasons.people)
  const codes = createCodes({ secret, clock })

  /** Makes the account that waits for its proof. Undefined: there is one meanwhile. */
  const insert = async (email: string, passwordHash: string): Promise<Code | undefined> => {
    const { code, set } = codes.codeOf(email, undefined)
    const now = clock.now()
    const pending = {
      verified: false,
      suspended: false,
      version: 1,
      settled: false,
      credits: config.signup_credits,
    }
    const user: User = {
      id: clock.id(),
      email,
      orgId: clock.id(),
      createdAt: now,
      passwordHash,
      ...pending,
      ...set,
    }
    return people.insert(Users, user).then(
      () => code,
      (error: unknown) => {
        if (hasCode(error, 'DUPLICATE')) return undefined
        throw error
      },
    )
  }
  /**
   * The code that proves the address; undefined when a verified account has the address. Of
   * different passwords none is kept, because the first or the last may come from a stranger.
   */
  const prepare = async (
    email: string,
    known: User | undefined,
    given: GivenPassword,
  ): Promise<Code | undefined> => {
    if (known?.verified) return undefined
    const inserted = known === undefined ? await insert(email, given.hash) : undefined
    if (inserted !== undefined) return inserted
    if (known !== undefined) {
      const { code, set } = codes.codeOf(email, known)
      const keeps = await given.isSame(known.passwordHash)
      const change = {
        set: { ...set, credits: config.signup_credits },
        unset: keeps ? [] : ['passwordHash'],
      }
      const unchanged = { verified: false, passwordHash: known.passwordHash ?? { exists: false } }
      if ((await people.update(Users, known.id, change, { if: unchanged })) !== undefined)
        return code
    }
    // The address was registered or proved in the same moment.
    return prepare(email, await users.byEmail(email), given)
  }
  const send = async (email: string, code: Code | undefined): Promise<void> => {
    const isTooMany = (await limits.take('letters_to', email, rates['letters_to']!)) > 0
    // Earlier emails name a working code, unless it is used up or too old. Then the new one must be
    // sent.
    if (isTooMany && !code?.isFresh) return
    // An email cannot be recalled, so the code is on disk before it is sent.
    await store.durable()
    await mail.send(code === undefined ? ownerEmail(email) : codeEmail(email, code.code))
  }
  /** The account whose address this code proves. */
  const proved = async (email: string, code: string): Promise<User | undefined> => {
    const user = await users.byEmail(email)
    const open = user !== undefined && !user.verified && (user.codeExpiresAt ?? 0) > clock.now()
    const expected = open ? user.codeHash : undefined
    const right = timingSafeEqual(
      Buffer.from(codes.hashOf(email, code.trim())),
      Buffer.from(expected ?? '0'.repeat(64)),
    )
    if (user === undefined || expected === undefined) return undefined
    // Counts the try before its answer is used, so that no try beyond the limit is answered.
    const tries = { verified: false, codeHash: expected, codeTries: { lt: codeTriesMax } }
    const counted = await people.update(Users, user.id, { inc: { codeTries: 1 } }, { if: tries })
    return right ? counted : undefined
  }
  return {
    async register(
      { email: given, password }: { email: string; password: string },
      address: string,
    ): Promise<{ email: string; expires_in: number }> {
      const email = normalEmail(given)
      const network = addressGroup(address)
      const waitMs = await limits.take('letters', `${email}\n${network}`, rates['letters']!)
      if (waitMs > 0)
        throw fault(
          'RATE_LIMITED',
          { limit: 'letters', seconds: Math.ceil(waitMs / 1000) },
          { retryAfterMs: waitMs },
        )
      const known = await users.byEmail(email)
      const isSame = (pending: string | undefined) => passwords.matches(password, pending, network)
      const hash = await passwords.hash(password, network)
      // Does the same work for every address, so that the time reveals nothing.
      if (known === undefined || known.verified) await isSame(undefined)
      await send(email, await prepare(email, known, { hash, isSame }))
      return { email, expires_in: codeMs / 1000 }
    },

    async verify(
      { email: given, code, password }: VerifyRequest,
      address: string,
    ): Promise<Verified> {
      const email = normalEmail(given)
      const network = addressGroup(address)
      const bounds = [
        { name: 'verify', subject: `${email}\n${network}` },
        { name: 'verify_address', subject: network },
      ]
      let user: User | undefined
      const right = await guesses.judged(
        bounds,
        async () => (user = await proved(email, code)) !== undefined,
      )
      if (!right || user === undefined) throw fault('CODE_INVALID')
      const chosen =
        password === undefined ? {} : { passwordHash: await passwords.hash(password, network) }
      const pending = { verified: false, codeHash: user.codeHash! }
      const verified = await people.update(
        Users,
        user.id,
        { set: { verified: true, ...chosen }, unset: codeFields },
        { if: pending },
      )
      if (verified === undefined) throw fault('CODE_INVALID')
      return {
        ...(await signIn.open(verified, network)),
        has_password: verified.passwordHash !== undefined,
      }
    },
  }
}
export type Registration = ReturnType<typeof createRegistration>
