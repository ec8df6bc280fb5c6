// Keys of programs, which POST /auth/token exchanges for access tokens.
import { Type as t, type Static } from 'typebox'
import { contract, named, page, Paging, ref, tagged, Timestamp } from './contract.ts'

export const activeKeysMax = 20

export const ApiKey = named(
  'ApiKey',
  t.Object({
    id: t.String({ format: 'uuid' }),
    name: t.String({ example: 'nightly-report' }),
    prefix: t.String({ example: 'sk_live_3f9c', description: 'How the key begins.' }),
    created_at: Timestamp,
    last_used_at: t.Union([Timestamp, t.Null()], {
      description: 'The last exchange, to the minute.',
    }),
  }),
)
export type ApiKey = Static<typeof ApiKey>
export const CreatedApiKey = named(
  'CreatedApiKey',
  t.Object({
    ...ApiKey.properties,
    secret: t.String({
      example: 'sk_live_3f9c…',
      description: 'The key itself. It is shown this once and cannot be recovered.',
    }),
  }),
)
export type CreatedApiKey = Static<typeof CreatedApiKey>

export const apiKeys = tagged(
  'API keys',
  contract({
    'POST /api-keys': {
      id: 'createApiKey',
      summary: 'Create an API key',
      status: 201,
      reply: CreatedApiKey,
      body: t.Object(
        { name: t.String({ minLength: 1, maxLength: 100, example: 'nightly-report' }) },
        { additionalProperties: false },
      ),
      description:
        'It carries all your rights in the organisation that your token names. At most ' +
        `${activeKeysMax} are active at a time.`,
      faults: ['KEYS_EXHAUSTED'],
    },
    'GET /api-keys': {
      id: 'listApiKeys',
      description: 'The newest first, without their secrets. Revoked keys are left out.',
      summary: 'List your active API keys',
      query: Paging,
      reply: page(ApiKey),
    },
    'DELETE /api-keys/{key_id}': {
      id: 'revokeApiKey',
      summary: 'Revoke an API key',
      params: { key_id: ref('api-key') },
      reply: 'none',
      description:
        'Exchanges stop at once; access tokens already issued live on for at most 15 minutes.',
    },
  }),
)
