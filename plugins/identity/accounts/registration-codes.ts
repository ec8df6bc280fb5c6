// The codes that prove an address. Each follows from a seed, the address and the secret.
import { createHmac } from 'node:crypto'
import type { Clock } from '#ports/clock.ts'
import type { User } from '../collections.ts'
import { codeAgeMsMax, codeMs, codeTriesMax, unverifiedMs } from '../config.ts'

const seedBytes = 16

/** `isFresh`: no letter has named it yet. */
export type Code = { readonly code: string; readonly isFresh: boolean }

export function createCodes({ secret, clock }: { secret: string; clock: Clock }) {
  const keyed = (...parts: string[]): Buffer =>
    createHmac('sha256', secret).update(parts.join('\n')).digest()
  // Six digits are soon guessed from a plain hash; not from one that is keyed by the secret.
  const hashOf = (email: string, code: string): string => keyed('code', email, code).toString('hex')
  const digitsOf = (email: string, seed: string): string =>
    String(keyed('digits', email, seed).readUIntBE(0, 6) % 1_000_000).padStart(6, '0')
  return {
    hashOf,
    /**
     * The code of earlier emails, while it may be named again. So a stranger's registration leaves
     * the owner's code valid.
     */
    codeOf(email: string, known: User | undefined) {
      const now = clock.now()
      const goesOn =
        known?.codeSeed !== undefined &&
        now - (known.codeMadeAt ?? 0) < codeAgeMsMax &&
        (known.codeTries ?? 0) < codeTriesMax
      const seed = goesOn
        ? known.codeSeed!
        : Buffer.from(clock.randomBytes(seedBytes)).toString('hex')
      const code = digitsOf(email, seed)
      const fresh = goesOn
        ? {}
        : { codeSeed: seed, codeHash: hashOf(email, code), codeMadeAt: now, codeTries: 0 }
      return {
        code: { code, isFresh: !goesOn },
        set: { ...fresh, codeExpiresAt: now + codeMs, expiresAt: now + unverifiedMs },
      }
    },
  }
}
