import { Type as t } from 'typebox'
import { apiKeys, auth } from '#contracts/identity.ts'
import { Authenticators, command, definePlugin, into } from '#kernel'
import { Billing } from '#ports/billing.ts'
import { SystemClock } from '#ports/clock.ts'
import { Limits } from '#ports/limits.ts'
import { Mail } from '#ports/mail.ts'
import { Storage } from '#ports/storage.ts'
import { createAccounts } from './accounts.ts'
import { Accounts, type AccountsApi } from './api.ts'
import { Families, Keys, Memberships, Organisations, reasons, RefreshTokens, Users } from './collections.ts'
import { IdentityConfig } from './config.ts'
import { createKeys, keyIn } from './keys.ts'
import { createPasswords } from './passwords.ts'
import { createRegistration } from './registration.ts'
import { createSecret } from './secret.ts'
import { createSessions } from './sessions.ts'
import { createSignIn } from './signin.ts'
import { createStates } from './states.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { createUsers } from './users.ts'

export default definePlugin({
  name: 'identity', version: '1.0.0', kernel: '^1.0.0', mount: 'v1',
  contract: { ...auth, ...apiKeys },
  uses: { store: Storage, mail: Mail, billing: Billing, clock: SystemClock, limits: Limits },
  config: IdentityConfig,
  may: { credit: ['first credits'], mail: 'codes that prove an address' },
  limits: {
    token: { count: 60, perMs: 60_000 },
    register: { count: 20, perMs: 3_600_000 },
    /** Letters to one address. */
    letters: { count: 5, perMs: 3_600_000 },
    /** Wrong passwords for one account: five, then one a minute. */
    login: { burst: 5, perSecond: 1 / 60 },
  },
  collections: [Users, Organisations, Memberships, Families, RefreshTokens, Keys],
  system: Object.values(reasons),
  services: {
    secret: createSecret, passwords: createPasswords, states: createStates, tokens: createTokens, sessions: createSessions,
    users: createUsers, keys: createKeys, accounts: createAccounts, signIn: createSignIn, registration: createRegistration,
  },
  provides: { accounts: Accounts },
  routes: {
    'POST /auth/token': ({ keys, headers, body }) => keys.exchange(keyIn({ headers, body })),
    'POST /auth/register': ({ registration, body }) => registration.register(body),
    'POST /auth/verify': ({ registration, body }) => registration.verify(body),
    'POST /auth/login': ({ signIn, body }) => signIn.login(body),
    'POST /auth/refresh': ({ sessions, body }) => sessions.refresh(body.refresh_token),
    'GET /auth/me': ({ users, caller }) => users.read(caller),
    'PATCH /auth/me': ({ users, caller, body }) => users.rename(caller, body.name),
    'POST /auth/change-password': ({ signIn, caller, body }) => signIn.changePassword(caller, body),
    'POST /auth/logout': ({ sessions, tokens, caller, headers, body }) => sessions.close(caller.userId, { familyId: tokens.claimsOf(headers['authorization'])?.familyId, refreshToken: body?.refresh_token }),
    'POST /api-keys': ({ keys, caller, body }) => keys.create(caller, body.name),
    'GET /api-keys': ({ keys, caller, query }) => keys.list(caller, query),
    'DELETE /api-keys/{key_id}': ({ keys, caller, params }) => keys.revoke(caller, params.key_id),
  },
  commands: {
    'admin create-user': command({
      summary: 'Makes a verified account in an organisation of its own and prints its API key.',
      options: t.Object({
        email: t.String({ minLength: 3, maxLength: 320 }),
        credits: t.Integer({ default: 1000, minimum: 0, maximum: 1_000_000_000, description: 'First credits.' }),
        password: t.Optional(t.String({ minLength: 8, maxLength: 256 })),
      }, { additionalProperties: false }),
      run: ({ accounts }: { accounts: AccountsApi }, options) => accounts.create(options),
    }),
  },
  contributes: [into(Authenticators, ({ tokens }: { tokens: Tokens }) => ({ kind: 'user', authenticate: (headers) => tokens.authenticate(headers['authorization']) }))],
})
