import { Type as t } from 'typebox'
import { apiKeys } from '#contracts/api-keys.ts'
import { auth } from '#contracts/identity.ts'
import { Authenticators, command, definePlugin, Host, into, Broadcast } from '#kernel'
import { Billing } from '#ports/billing.ts'
import { SystemClock } from '#ports/clock.ts'
import { Limits } from '#ports/limits.ts'
import { Mail } from '#ports/mail.ts'
import { Storage } from '#ports/storage.ts'
import { createAccounts } from './accounts/accounts.ts'
import { Accounts, type AccountsApi } from './api.ts'
import {
  Families,
  Keys,
  Memberships,
  Organisations,
  reasons,
  RefreshTokens,
  Users,
} from './collections.ts'
import { IdentityConfig } from './config.ts'
import { createGuesses } from './signin/guesses.ts'
import { createKeys, keyIn } from './keys/keys.ts'
import { createPasswords } from './passwords/passwords.ts'
import { createRegistration } from './accounts/registration.ts'
import { createSigningKey } from './signin/signing-key.ts'
import { createSessions } from './signin/sessions.ts'
import { createSignIn } from './signin/signin.ts'
import { createUserStatusCache } from './accounts/user-status-cache.ts'
import { createTokens, type Tokens } from './signin/tokens.ts'
import { createUsers } from './accounts/users.ts'

export default definePlugin({
  name: 'identity',
  version: '1.0.0',
  kernel: '^1.0.0',
  mount: 'v1',
  contract: { ...auth, ...apiKeys },
  uses: {
    store: Storage,
    mail: Mail,
    billing: Billing,
    clock: SystemClock,
    limits: Limits,
    host: Host,
    peers: Broadcast,
  },
  config: IdentityConfig,
  may: { credit: ['first credits'], mail: 'codes that prove an address' },
  limits: {
    token: {
      about: 'Access tokens that one network asks for by an API key',
      count: 60,
      perMs: 60_000,
    },
    register: { about: 'Registrations from one network', count: 20, perMs: 3_600_000 },
    letters: {
      about: 'Emails that one network may have sent to one address',
      count: 5,
      perMs: 3_600_000,
    },
    /** Beyond it an email is sent only where those before name no code that works. */
    letters_to: { about: 'Emails to one address', burst: 10, perSecond: 1 / 300 },
    login: {
      about: 'Wrong passwords for one account from one network',
      burst: 5,
      perSecond: 1 / 60,
    },
    login_account: {
      about: 'Wrong passwords for one account from all networks that it does not know',
      burst: 50,
      perSecond: 1 / 30,
    },
    login_address: {
      about: 'Wrong passwords of one network for all accounts',
      burst: 50,
      perSecond: 1 / 6,
    },
    verify: {
      about: 'Wrong codes for one address from one network',
      burst: 5,
      perSecond: 1 / 180,
    },
    verify_address: {
      about: 'Wrong codes of one network for all addresses',
      burst: 30,
      perSecond: 1 / 60,
    },
    refresh_address: {
      about: 'Refresh tokens of one network that are not valid',
      burst: 60,
      perSecond: 1,
    },
  },
  collections: [Users, Organisations, Memberships, Families, RefreshTokens, Keys],
  system: Object.values(reasons),
  services: {
    secret: createSigningKey,
    guesses: createGuesses,
    passwords: createPasswords,
    states: createUserStatusCache,
    tokens: createTokens,
    sessions: createSessions,
    users: createUsers,
    keys: createKeys,
    accounts: createAccounts,
    signIn: createSignIn,
    registration: createRegistration,
  },
  provides: { accounts: Accounts },
  routes: {
    'POST /auth/token': ({ keys, headers, body }) => keys.exchange(keyIn({ headers, body })),
    'POST /auth/register': ({ registration, body, address }) =>
      registration.register(body, address),
    'POST /auth/verify': ({ registration, body, address }) => registration.verify(body, address),
    'POST /auth/login': ({ signIn, body, address }) => signIn.login(body, address),
    'POST /auth/refresh': ({ sessions, body, address }) =>
      sessions.refresh(body.refresh_token, address),
    'GET /auth/me': ({ users, caller }) => users.read(caller),
    'PATCH /auth/me': ({ users, caller, body }) => users.rename(caller, body.name),
    'POST /auth/change-password': ({ signIn, caller, body, address }) =>
      signIn.changePassword(caller, body, address),
    'POST /auth/logout': ({ sessions, tokens, caller, headers, body }) =>
      sessions.close(caller.userId, {
        familyId: tokens.claimsOf(headers['authorization'])?.familyId,
        refreshToken: body?.refresh_token,
      }),
    'POST /api-keys': ({ keys, caller, body }) => keys.create(caller, body.name),
    'GET /api-keys': ({ keys, caller, query }) => keys.list(caller, query),
    'DELETE /api-keys/{key_id}': ({ keys, caller, params }) => keys.revoke(caller, params.key_id),
  },
  commands: {
    'admin create-user': command({
      summary: 'Makes a verified account in an organisation of its own and prints its API key.',
      options: t.Object(
        {
          email: t.String({ minLength: 3, maxLength: 320 }),
          credits: t.Integer({
            default: 1000,
            minimum: 0,
            maximum: 1_000_000_000,
            description: 'First credits.',
          }),
          password: t.Optional(t.String({ minLength: 8, maxLength: 256 })),
        },
        { additionalProperties: false },
      ),
      run: ({ accounts }: { accounts: AccountsApi }, options) => accounts.create(options),
    }),
  },
  contributes: [
    into(Authenticators, ({ tokens }: { tokens: Tokens }) => ({
      kind: 'user',
      authenticate: headers => tokens.authenticate(headers['authorization']),
    })),
  ],
})
