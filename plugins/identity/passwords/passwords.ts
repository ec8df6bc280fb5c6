// Argon2id (RFC 9106) at OWASP's floor: 19 MiB, two passes, one lane; kept as a PHC string, so that
// the figures may grow later.
import { argon2, timingSafeEqual } from 'node:crypto'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { createFairSemaphore } from './fair-semaphore.ts'

type Cost = { readonly memory: number; readonly passes: number; readonly parallelism: number }
const costUsual: Cost = { memory: 19_456, passes: 2, parallelism: 1 }
const tagBytes = 32
const saltBytes = 16
/** Hashes at a time. Each takes a thread of the pool that also reads files. */
const atOnceMax = 2
const waitingMax = 200
const retryMs = 2000

const phcKind = '$argon2id$v=19$'
const phcRest =
  /^m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/
const parsed = (phc: string) =>
  phc.startsWith(phcKind) ? phcRest.exec(phc.slice(phcKind.length)) : null
const unpadded = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('base64')
    .replace(/={1,2}$/, '')
const phcOf = ({ memory, passes, parallelism }: Cost, salt: Uint8Array, tag: Uint8Array) =>
  `${phcKind}m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`

const derive = (
  password: string,
  { salt, memory, passes, parallelism, tagLength }: Cost & { salt: Uint8Array; tagLength: number },
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    // The same characters typed on two keyboards may be different code points: NFKC, as NIST SP
    // 800-63B asks.
    argon2(
      'argon2id',
      {
        message: Buffer.from(password.normalize('NFKC'), 'utf8'),
        nonce: salt,
        memory,
        passes,
        parallelism,
        tagLength,
      },
      (error, tag) => (error === null ? resolve(tag) : reject(error)),
    )
  })

export function createPasswords({ clock }: { clock: Pick<Clock, 'randomBytes'> }) {
  const refuse = () => fault('SHEDDING', { seconds: retryMs / 1000 }, { retryAfterMs: retryMs })
  const inTurn = createFairSemaphore({
    atOnce: atOnceMax,
    atOncePerKey: atOnceMax,
    waitingMax: waitingMax,
    refuse,
  })
  // The hash for an unknown user's password: the same work, and never a match.
  const nobody = phcOf(costUsual, clock.randomBytes(saltBytes), clock.randomBytes(tagBytes))
  return {
    /**
     * `asker`: whose turn it takes, such as the network that a request came from. SHEDDING where
     * too many wait.
     */
    async hash(password: string, asker: string): Promise<string> {
      const salt = clock.randomBytes(saltBytes)
      const tag = await inTurn(asker, () =>
        derive(password, { ...costUsual, salt, tagLength: tagBytes }),
      )
      return phcOf(costUsual, salt, tag)
    },
    /** Takes as long when there is no hash to compare with, and is false then. */
    async matches(password: string, hash: string | undefined, asker: string): Promise<boolean> {
      const [, m, t, p, salt, tag] = parsed(hash ?? nobody) ?? parsed(nobody)!
      const expected = Buffer.from(tag!, 'base64')
      const cost = { memory: Number(m), passes: Number(t), parallelism: Number(p) }
      const parts = { ...cost, salt: Buffer.from(salt!, 'base64'), tagLength: expected.length }
      const found = await inTurn(asker, () => derive(password, parts))
      return timingSafeEqual(found, expected) && hash !== undefined
    },
  }
}
export type Passwords = ReturnType<typeof createPasswords>
