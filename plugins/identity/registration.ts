// Registering: an address, a password, and the code that proves the address. Nothing here tells whether an address has an account.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { SignedIn } from '#contracts/identity.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import type { Mailer } from '#ports/mail.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { reasons, Users, type User } from './collections.ts'
import { codeMs, codeTriesMax, unverifiedMs, type IdentityConfig } from './config.ts'
import { codeLetter, ownerLetter } from './letters.ts'
import type { Passwords } from './passwords.ts'
import type { SignIn } from './signin.ts'
import { normalEmail, type UsersService } from './users.ts'

type Deps = { store: ScopedStorage; clock: Clock; mail: Mailer; limits: RateLimiter; rates: Readonly<Record<string, Rate>>; config: IdentityConfig; secret: string; passwords: Passwords; users: UsersService; signIn: SignIn }

export function createRegistration({ store, clock, mail, limits, rates, config, secret, passwords, users, signIn }: Deps) {
  const people = store.system(reasons.people)
  // Six digits are soon guessed from a plain hash; not from one that is keyed by the secret.
  const codeHashOf = (email: string, code: string): string => createHmac('sha256', secret).update(`code\n${email}\n${code}`).digest('hex')
  const newCode = (): string => String(Number(Buffer.from(clock.randomBytes(6)).readUIntBE(0, 6)) % 1_000_000).padStart(6, '0')

  /** The code under which the address can be proved; undefined when it has a verified account. */
  const prepare = async (email: string, passwordHash: string): Promise<string | undefined> => {
    const code = newCode()
    const now = clock.now()
    const pending = { passwordHash, credits: config.signup_credits, codeHash: codeHashOf(email, code), codeExpiresAt: now + codeMs, codeTries: 0, expiresAt: now + unverifiedMs }
    const known = await users.byEmail(email)
    if (known === undefined) {
      const user: User = { id: clock.id(), email, verified: false, suspended: false, version: 1, orgId: clock.id(), settled: false, createdAt: now, ...pending }
      try {
        await people.insert(Users, user)
        return code
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
        return prepare(email, passwordHash)
      }
    }
    return (await people.update(Users, known.id, { set: pending }, { if: { verified: false } })) === undefined ? undefined : code
  }
  return {
    async register({ email: given, password }: { email: string; password: string }): Promise<{ email: string; expires_in: number }> {
      const email = normalEmail(given)
      const waitMs = await limits.take('letters', email, rates['letters']!)
      if (waitMs > 0) throw fault('RATE_LIMITED', { limit: 'letters', seconds: Math.ceil(waitMs / 1000) }, { retryAfterMs: waitMs })
      const code = await prepare(email, await passwords.hash(password))
      // A letter cannot be called back: what it speaks of is on disk before it leaves.
      await store.durable()
      await mail.send(code === undefined ? ownerLetter(email) : codeLetter(email, code))
      return { email, expires_in: codeMs / 1000 }
    },

    async verify({ email: given, code }: { email: string; code: string }): Promise<SignedIn> {
      const email = normalEmail(given)
      const user = await users.byEmail(email)
      if (user?.codeHash === undefined || user.verified || (user.codeExpiresAt ?? 0) <= clock.now()) throw fault('CODE_INVALID')
      // The try is counted before it is judged: of a thousand at once, five are judged.
      const pending = { verified: false, codeHash: user.codeHash }
      if ((await people.update(Users, user.id, { inc: { codeTries: 1 } }, { if: { ...pending, codeTries: { lt: codeTriesMax } } })) === undefined) throw fault('CODE_INVALID')
      if (!timingSafeEqual(Buffer.from(codeHashOf(email, code.trim())), Buffer.from(user.codeHash))) throw fault('CODE_INVALID')
      const verified = await people.update(Users, user.id, { set: { verified: true }, unset: ['codeHash', 'codeExpiresAt', 'codeTries', 'expiresAt'] }, { if: pending })
      if (verified === undefined) throw fault('CODE_INVALID')
      return signIn.open(verified)
    },
  }
}
export type Registration = ReturnType<typeof createRegistration>
