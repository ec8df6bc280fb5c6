import { Type as t, type Static } from 'typebox'

export const IdentityConfig = t.Object({
  secret: t.Optional(
    t.String({
      minLength: 32,
      maxLength: 1000,
      'x-env': 'AUTH_SECRET',
      'x-secret': true,
      description:
        'Signs access tokens; the same on every process. Without it one is made and kept ' +
        'in <DATA_DIR>/auth.secret.',
    }),
  ),
  data_dir: t.String({
    default: './data',
    'x-env': 'DATA_DIR',
    description: 'The folder of the embedded default; here, of auth.secret.',
  }),
  signup_credits: t.Integer({
    default: 100,
    minimum: 0,
    maximum: 1_000_000_000,
    'x-env': 'SIGNUP_CREDITS',
    description: 'Credits that a verified account starts with.',
  }),
})
export type IdentityConfig = Static<typeof IdentityConfig>

export const accessTokenSeconds = 900
export const refreshTokenMs = 30 * 24 * 3_600_000
/**
 * Milliseconds in which a second use of a refresh token is no theft: two tabs or two processes may
 * race.
 */
export const refreshGraceMs = 10_000
/** Milliseconds that a code works after the last email that named it. */
export const codeMs = 15 * 60_000
/** Milliseconds for which emails name the same code. */
export const codeAgeMsMax = 60 * 60_000
/** Wrong guesses of all networks together. Each network has a much lower bound of its own. */
export const codeTriesMax = 300
/** How many networks of a user are recognised. */
export const networksKept = 10
export const unverifiedMs = 24 * 3_600_000
/** Milliseconds for which a process may cache a user's status. */
export const stateMs = 10_000
export const keyUseMs = 60_000
export const revokedKeyMs = 90 * 24 * 3_600_000
