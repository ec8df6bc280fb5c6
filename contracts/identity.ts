import { Type as t, type Static } from 'typebox'
import { contract, named, tagged, Timestamp } from './contract.ts'

export const passwordCharsMin = 8
export const passwordCharsMax = 256

const Email = t.String({
  example: 'you@example.com',
  minLength: 3,
  maxLength: 320,
  description: 'An e-mail address. Capitals and surrounding spaces do not matter.',
})
const NewPassword = t.String({
  example: 'correct horse battery staple',
  minLength: passwordCharsMin,
  maxLength: passwordCharsMax,
  description: `${passwordCharsMin} to ${passwordCharsMax} characters.`,
})
const Password = t.String({
  minLength: 1,
  maxLength: passwordCharsMax,
  example: 'correct horse battery staple',
})
const RefreshToken = t.String({
  example: '3f9c…',
  minLength: 1,
  maxLength: 200,
  description: 'As answered at the last sign-in or refresh.',
})

export const AccessToken = named(
  'AccessToken',
  t.Object({
    access_token: t.String({
      example: 'eyJhbGciOi…',
      description: 'A JWT, for `Authorization: Bearer`.',
    }),
    token_type: t.Literal('Bearer'),
    expires_in: t.Integer({ example: 900, description: 'Seconds.' }),
  }),
)
export type AccessToken = Static<typeof AccessToken>

export const SignedIn = named(
  'TokenPair',
  t.Object({
    ...AccessToken.properties,
    refresh_token: t.String({
      example: '3f9c…',
      description: 'Good for 30 days and one refresh, which answers the next one.',
    }),
  }),
)
export type SignedIn = Static<typeof SignedIn>

export const Profile = named(
  'Profile',
  t.Object({
    user_id: t.String({ format: 'uuid' }),
    email: t.String({ example: 'you@example.com' }),
    name: t.Union([t.String(), t.Null()], { example: 'Your Name' }),
    org_id: t.String({
      format: 'uuid',
      description: 'The organisation that the access token names.',
    }),
    role: t.String({ example: 'owner' }),
    created_at: Timestamp,
    has_password: t.Boolean({
      example: true,
      description: 'False: POST /auth/change-password sets the first one.',
    }),
  }),
)
export type Profile = Static<typeof Profile>

const closed = { additionalProperties: false } as const
/** Bodies under /auth are short, so 8 KiB is enough. */
const small = { bodyMaxBytes: 8 << 10 } as const

export const Verified = named(
  'VerifiedTokenPair',
  t.Object({
    ...SignedIn.properties,
    has_password: t.Boolean({
      description: 'False where the address was registered with different passwords: set one now.',
    }),
  }),
)
export type Verified = Static<typeof Verified>
const VerifyRequest = t.Object(
  {
    email: Email,
    code: t.String({ pattern: '^ *[0-9]{6} *$', example: '123456', description: 'Six digits.' }),
    password: t.Optional(
      t.String({
        ...NewPassword,
        description: 'The account gets this password in place of the one it was registered with.',
      }),
    ),
  },
  closed,
)
export type VerifyRequest = Static<typeof VerifyRequest>
const LoginRequest = t.Object(
  {
    email: Email,
    password: Password,
    refresh_token: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 200,
        description:
          'The last refresh token of this device, also one that has been used. Wrong ' +
          'guesses of others do not hold up a device that sends it.',
      }),
    ),
  },
  closed,
)
export type LoginRequest = Static<typeof LoginRequest>
const PasswordChange = t.Object(
  { current_password: t.Optional(Password), new_password: NewPassword },
  closed,
)
export type PasswordChange = Static<typeof PasswordChange>

export const auth = tagged(
  'Sign-in',
  contract({
    'POST /auth/token': {
      id: 'exchangeApiKey',
      ...small,
      summary: 'Exchange an API key for an access token',
      auth: 'public',
      reply: AccessToken,
      limit: { name: 'token', by: 'address' },
      description:
        'The only operation that takes the key itself: as X-API-Key, as Authorization: ' +
        'Bearer, or as body {api_key}; the first of these that begins with `sk_live_` ' +
        'counts. Keep the token for expires_in seconds.',
      headers: {
        'x-api-key': t.Optional(t.String({ maxLength: 200, description: 'The API key.' })),
      },
      body: t.Object(
        { api_key: t.Optional(t.String({ maxLength: 200, example: 'sk_live_3f9c…' })) },
        closed,
      ),
      bodyOptional: true,
      faults: ['KEY_INVALID', 'ACCOUNT_SUSPENDED'],
    },
    'POST /auth/register': {
      id: 'register',
      ...small,
      summary: 'Register an account',
      auth: 'public',
      status: 202,
      limit: { name: 'register', by: 'address' },
      description:
        'Sends a six-digit code to the address; POST /auth/verify takes it. The answer is ' +
        'the same whether or not the address has an account already.',
      body: t.Object({ email: Email, password: NewPassword }, closed),
      reply: t.Object({
        email: t.String({ example: 'you@example.com', description: 'The address as it is kept.' }),
        expires_in: t.Integer({ example: 900, description: 'Seconds until the code expires.' }),
      }),
      faults: ['SHEDDING'],
    },
    'POST /auth/verify': {
      id: 'verifyEmail',
      ...small,
      summary: 'Prove an e-mail address by its code, and sign in',
      auth: 'public',
      reply: Verified,
      description:
        'Five tries, then one in three minutes, for each client network. A verified account ' +
        'has an organisation of its own. ' +
        'The code proves the address alone: where the address was registered with different ' +
        'passwords, none of them is taken. ' +
        'Send `password` here, or set one by POST /auth/change-password.',
      body: VerifyRequest,
      faults: ['CODE_INVALID', 'RATE_LIMITED', 'SHEDDING', 'FORBIDDEN'],
    },
    'POST /auth/login': {
      id: 'login',
      ...small,
      summary: 'Sign in',
      auth: 'public',
      reply: SignedIn,
      description:
        'After repeated failures sign-in waits; the answer says how long, and says it of ' +
        'accounts that do not exist, too. ' +
        'Failures of others hold up neither a network from which the user has signed in nor ' +
        'a device that sends its refresh token.',
      body: LoginRequest,
      faults: [
        'CREDENTIALS_INVALID',
        'EMAIL_UNVERIFIED',
        'ACCOUNT_SUSPENDED',
        'LOGIN_THROTTLED',
        'SHEDDING',
        'FORBIDDEN',
      ],
    },
    'POST /auth/refresh': {
      id: 'refreshTokens',
      ...small,
      summary: 'Get the next pair of tokens',
      auth: 'public',
      reply: SignedIn,
      description:
        'Each refresh token works once. The same one again within ten seconds answers ' +
        'another pair, so that two tabs may race; later it ends the whole sign-in, because ' +
        'somebody else has it.',
      body: t.Object({ refresh_token: RefreshToken }, closed),
      faults: ['REFRESH_INVALID', 'ACCOUNT_SUSPENDED', 'RATE_LIMITED'],
    },
    'GET /auth/me': {
      id: 'getProfile',
      description: 'Who the access token is for, and in which organisation.',
      summary: 'Read your profile',
      reply: Profile,
    },
    'PATCH /auth/me': {
      id: 'updateProfile',
      description: 'Sets the name; null removes it.',
      ...small,
      summary: 'Change your profile',
      reply: Profile,
      body: t.Object(
        {
          name: t.Union([t.String({ minLength: 1, maxLength: 200 }), t.Null()], {
            example: 'Your Name',
          }),
        },
        closed,
      ),
    },
    'POST /auth/change-password': {
      id: 'changePassword',
      ...small,
      summary: 'Change your password',
      reply: SignedIn,
      description:
        'Ends every sign-in and every API key of the account, and answers a new pair of ' +
        'tokens for this one. ' +
        'An account that has no password sets its first one without `current_password`.',
      body: PasswordChange,
      faults: ['PASSWORD_WRONG', 'LOGIN_THROTTLED', 'SHEDDING', 'CONFLICT'],
    },
    'POST /auth/logout': {
      id: 'logout',
      ...small,
      summary: 'Sign out',
      reply: 'none',
      description:
        'Ends the sign-in from which the access token comes, or that of refresh_token. An ' +
        'access token already issued stays valid until it expires.',
      body: t.Object({ refresh_token: t.Optional(RefreshToken) }, closed),
      bodyOptional: true,
    },
  }),
)
