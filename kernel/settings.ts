// Settings come from environment variables (twelve-factor). The kernel's settings are listed here,
// and a plugin's `config` adds its own.
import { readFileSync } from 'node:fs'
import { Type as t, type Static, type TSchema } from 'typebox'
import { fault } from '#contracts/faults.ts'
import type { HttpSettings } from '#ports/http.ts'
import type { Rate } from '#ports/limits.ts'
import type { Plugin } from './plugin.ts'
import { createValidator } from './validate.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const port = (about: string, fallback?: number) =>
  t.Integer({
    minimum: 0,
    maximum: 65535,
    description: about,
    ...(fallback === undefined ? {} : { default: fallback }),
  })

/** A URL's scheme names the adapter: adapters/<port>/<scheme>.ts. */
export const KernelSettings = t.Object({
  PORT: port('Where the API listens; 0 takes any free port.', 8080),
  HOST: t.String({ default: '0.0.0.0', description: 'The address to bind.' }),
  ROLE: t.Union([t.Literal('all'), t.Literal('api'), t.Literal('worker')], {
    default: 'all',
    description:
      'What this process does: api answers requests, worker drives runs and does jobs (it ' +
      'answers only /healthz, /readyz and /metrics), all does both. Several processes need ' +
      'a storage that they can share.',
  }),
  DATA_DIR: t.String({
    default: './data',
    description:
      'The folder of the embedded default: databases, blobs, outbox, secrets, admin ' +
      'socket. Made with mode 0700.',
  }),
  LOG_LEVEL: t.Union(
    [t.Literal('debug'), t.Literal('info'), t.Literal('warn'), t.Literal('error')],
    { default: 'info', description: 'debug, info, warn or error.' },
  ),
  LOG_REQUESTS: t.Boolean({
    default: false,
    description: 'A line at info for each request; otherwise it is written at debug.',
  }),
  STORAGE_URL: t.String({
    default: 'sqlite:',
    description:
      'Documents. sqlite:<path> (default <DATA_DIR>/platform.db), mongodb://host/database ' +
      'or memory:.',
  }),
  EVENTLOG_URL: t.Optional(t.String({ description: 'Event streams; follows STORAGE_URL.' })),
  BILLING_URL: t.String({
    default: 'ledger:',
    description: 'The credit ledger; ledger: keeps it in the storage.',
  }),
  QUEUE_URL: t.String({
    default: 'storage:',
    description:
      'Background jobs; storage: keeps them in the storage, agenda:mongodb://host/database ' +
      'in MongoDB by Agenda.',
  }),
  BLOBS_URL: t.Optional(
    t.String({
      description:
        'Files. file:<path> (default <DATA_DIR>/blobs), mongodb://host/database (GridFS), ' +
        's3://bucket/prefix?region=… (any store that speaks S3; adapters/blobs/README.md) ' +
        'or memory:. Follows STORAGE_URL where that can hold files.',
    }),
  ),
  SEARCH_URL: t.Optional(
    t.String({
      description:
        'Conversations and passages by words and vectors. sqlite:<path> (default ' +
        '<DATA_DIR>/search.db), mongodb://host/database, opensearch://host:9200/prefix ' +
        '(OPENSEARCH_USERNAME, OPENSEARCH_PASSWORD) or memory:. Follows STORAGE_URL where ' +
        'that is MongoDB.',
    }),
  ),
  MODELS_URL: t.String({
    default: 'offline:',
    description:
      'Language models. offline: (no weights; answers from the material given), ' +
      'openai:?model=… or openai:http://host/v1?model=…, anthropic:?model=…, config:<path ' +
      'to a JSON file> for several, or scripted: (tests). Options: ' +
      'adapters/models/README.md.',
  }),
  MAIL_URL: t.String({
    default: 'outbox:',
    description:
      'Letters. outbox:<path> (default <DATA_DIR>/outbox), smtp://user:password@host:port ' +
      'or memory:.',
  }),
  MAIL_PER_PLUGIN_PER_HOUR: t.Integer({
    default: 10_000,
    minimum: 1,
    description: 'How many emails one plugin may send in an hour.',
  }),
  LIMITS_URL: t.Optional(
    t.String({
      description:
        'Where rate limits are counted; memory: counts in this process. Follows ' +
        'STORAGE_URL where that is shared.',
    }),
  ),
  TRACES_URL: t.String({
    default: 'off:',
    description:
      'Traces. off: or otlp:http://collector:4318 (OTLP over HTTP; otlp: alone takes ' +
      'OTEL_EXPORTER_OTLP_ENDPOINT).',
  }),
  CLOCK_URL: t.String({ default: 'system:', description: 'Time. system: (manual: in tests).' }),
  HTTP_URL: t.String({ default: 'restify:', description: 'The HTTP server.' }),
  TLS_CERT: t.Optional(
    t.String({ description: 'A PEM file; with TLS_KEY the API speaks HTTPS (TLS 1.2 or newer).' }),
  ),
  TLS_KEY: t.Optional(t.String({ description: 'A PEM file.' })),
  TLS_REDIRECT_PORT: t.Optional(port('Where plain HTTP is redirected to HTTPS.')),
  TLS_REDIRECT_HOST: t.Optional(
    t.String({
      pattern: '^[A-Za-z0-9._-]{1,255}$',
      description:
        'The name that plain HTTP is redirected to; without it, the name that was asked ' +
        'for, if the certificate is for it.',
    }),
  ),
  TRUST_PROXY: t.Integer({
    default: 0,
    minimum: 0,
    maximum: 16,
    description:
      'How many proxies stand in front; the client address is taken that many hops from ' +
      'the right of X-Forwarded-For.',
  }),
  CORS_ORIGINS: t.String({
    default: '',
    description: 'Origins that browsers may call from, separated by commas; * for any.',
  }),
  HTTP_STREAMS_MAX: t.Integer({
    default: 20000,
    minimum: 1,
    description: 'Open event streams in this process; more are answered 503.',
  }),
  HTTP_STREAMS_PER_USER_MAX: t.Integer({
    default: 2000,
    minimum: 1,
    description: 'Of these, open for one user; more are answered 429.',
  }),
  HTTP_STREAMS_PER_ADDRESS_MAX: t.Integer({
    default: 10000,
    minimum: 1,
    description: 'Of these, open for one address (IPv6: one /64 network); more are answered 429.',
  }),
  HTTP_BODIES_MAX: t.Integer({
    default: 1024,
    minimum: 1,
    description: 'Request bodies that arrive in pieces at one time; more are answered 503.',
  }),
  HTTP_BODIES_PER_USER_MAX: t.Integer({
    default: 64,
    minimum: 1,
    description: 'Of these, of one user; more are answered 429.',
  }),
  HTTP_BODIES_PER_ADDRESS_MAX: t.Integer({
    default: 256,
    minimum: 1,
    description: 'Of these, from one address; more are answered 429.',
  }),
  HTTP_UNREAD_BYTES_MAX: t.Integer({
    default: 268435456,
    minimum: 1 << 20,
    description:
      'Bytes of finished answers that are held until their readers take them; one user or ' +
      'address has at most a quarter. More are answered 503 or 429.',
  }),
  HTTP_SILENCE_MS: t.Integer({
    default: 60000,
    minimum: 1000,
    maximum: 3600000,
    description:
      'A connection on which no byte moved for so long, either way, is ended. Event ' +
      'streams move by their heartbeat, every 15 s.',
  }),
  HTTP_HEAD_MS: t.Integer({
    default: 20000,
    minimum: 1000,
    maximum: 600000,
    description: 'Within this the head of a request must have come.',
  }),
  HTTP_BODY_BYTES_PER_SECOND_MIN: t.Integer({
    default: 1024,
    minimum: 1,
    description: 'A body that arrives slower than this is cut off.',
  }),
  ADAPTERS_DIR: t.Optional(
    t.String({
      description:
        'Folders of further adapters, with commas between them; each holds <port>/<scheme>.js.',
    }),
  ),
  PLUGINS_DIR: t.Optional(
    t.String({
      description:
        'A folder of further plugins, each in a folder of its own with plugin.js or plugin.ts.',
    }),
  ),
  PLUGINS_WATCH: t.Boolean({
    default: false,
    description: 'For development: plugins are reloaded when their files change.',
  }),
  PLUGIN_STEP_MS: t.Integer({
    default: 30_000,
    minimum: 100,
    description:
      'How long each step of loading a plugin may take, in milliseconds: its import, what ' +
      'it makes, its start, its health, each undo.',
  }),
  PLUGIN_DEFINE_MS: t.Integer({
    default: 600_000,
    minimum: 100,
    description:
      'How long the storage may take to define a collection of a plugin with its indexes, ' +
      'in milliseconds.',
  }),
  PLUGIN_CRASHES_MAX: t.Integer({
    default: 2,
    minimum: 1,
    description:
      'So often may a plugin end the process within PLUGIN_CRASH_HOURS; then it is left ' +
      'out until it is loaded again or changes.',
  }),
  PLUGIN_CRASH_HOURS: t.Integer({
    default: 24,
    minimum: 1,
    description: 'How long it is remembered that a plugin ended the process, in hours.',
  }),
  DRAIN_MS: t.Integer({
    default: 5000,
    minimum: 0,
    description: 'How long a stop or a reload waits for what is under way.',
  }),
})
export type Settings = Static<typeof KernelSettings>

export const propertiesOf = (schema: TSchema | undefined) =>
  Object.entries(
    (
      schema as
        | {
            properties?: Record<
              string,
              TSchema & { description?: string; default?: unknown; 'x-env'?: string }
            >
          }
        | undefined
    )?.properties ?? {},
  )
const snake = (name: string) => name.replace(/[^a-zA-Z0-9]+/g, '_').toUpperCase()

/**
 * The variable, or the content of the file that `<name>_FILE` names, trimmed. INVALID_FIELD when
 * the file cannot be read.
 */
export function valueIn(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]
  if (!file) return env[name]
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: `${name}_FILE`, why: `cannot be read (${(cause as NodeJS.ErrnoException).code})` },
      { cause },
    )
  }
}

/** Reads and checks the kernel's settings. INVALID_FIELD names the setting. */
export function readSettings(env: Environment): Settings {
  const given = Object.fromEntries(
    propertiesOf(KernelSettings).flatMap(([name]) => {
      const value = valueIn(env, name)
      return value ? [[name, value]] : []
    }),
  )
  const settings = createValidator().check('config', KernelSettings)(given) as Settings
  if (Boolean(settings.TLS_CERT) !== Boolean(settings.TLS_KEY))
    throw fault('INVALID_FIELD', { field: 'TLS_CERT', why: 'is needed together with TLS_KEY' })
  return settings
}

/** The HTTP server's part of the settings. */
export function httpSettings(settings: Settings): HttpSettings {
  const {
    TLS_CERT: cert,
    TLS_KEY: key,
    TLS_REDIRECT_PORT: redirectPort,
    TLS_REDIRECT_HOST: redirectHost,
  } = settings
  const unread = settings.HTTP_UNREAD_BYTES_MAX
  const unreadShare = Math.ceil(unread / 4)
  return {
    host: settings.HOST,
    port: settings.PORT,
    trustProxy: settings.TRUST_PROXY,
    streams: {
      total: settings.HTTP_STREAMS_MAX,
      perUser: settings.HTTP_STREAMS_PER_USER_MAX,
      perAddress: settings.HTTP_STREAMS_PER_ADDRESS_MAX,
    },
    bodies: {
      total: settings.HTTP_BODIES_MAX,
      perUser: settings.HTTP_BODIES_PER_USER_MAX,
      perAddress: settings.HTTP_BODIES_PER_ADDRESS_MAX,
    },
    unreadBytes: { total: unread, perUser: unreadShare, perAddress: unreadShare },
    bodyBytesPerSecondMin: settings.HTTP_BODY_BYTES_PER_SECOND_MIN,
    silenceMs: settings.HTTP_SILENCE_MS,
    headMs: settings.HTTP_HEAD_MS,
    corsOrigins: settings.CORS_ORIGINS.split(',')
      .map(origin => origin.trim())
      .filter(Boolean),
    ...(cert && key
      ? {
          tls: {
            cert,
            key,
            ...(redirectPort === undefined ? {} : { redirectPort }),
            ...(redirectHost === undefined ? {} : { redirectHost }),
          },
        }
      : {}),
  }
}

export const envName = (plugin: string, property: string, schema: { 'x-env'?: string }) =>
  schema['x-env'] ?? `${snake(plugin)}_${snake(property)}`

/**
 * Reads a plugin's config from its settings. Checks use the settings' names, so that an error names
 * what the operator set.
 */
export function readConfig(plugin: Plugin, env: Environment): object {
  const rows = propertiesOf(plugin.config).map(([property, schema]) => ({
    property,
    schema,
    name: envName(plugin.name, property, schema),
  }))
  const given = Object.fromEntries(
    rows.flatMap(({ name }) => {
      const value = valueIn(env, name)
      return value ? [[name, value]] : []
    }),
  )
  if (!plugin.config) return given
  const { required = [] } = plugin.config as { required?: readonly string[] }
  const named = {
    ...plugin.config,
    properties: Object.fromEntries(rows.map(({ name, schema }) => [name, schema])),
    required: rows.filter(({ property }) => required.includes(property)).map(({ name }) => name),
  }
  const checked = createValidator().check('config', named)(given) as Record<string, unknown>
  return Object.fromEntries(
    rows.flatMap(({ property, name }) => (name in checked ? [[property, checked[name]]] : [])),
  )
}

const windows = new Map([
  [1000, 'SECOND'],
  [60_000, 'MINUTE'],
  [3_600_000, 'HOUR'],
] as const)
type RateSetting = {
  name: string
  setting: string
  part: 'perSecond' | 'burst' | 'count'
  value: number
}
/**
 * Each number of a rate is a setting: LIMITS_RUNS_PER_SECOND, LIMITS_RUNS_BURST,
 * LIMITS_TOKEN_PER_MINUTE.
 */
export function ratesOf(plugin: Plugin): RateSetting[] {
  return Object.entries(plugin.limits ?? {}).flatMap(([name, rate]): RateSetting[] => {
    const stem = `LIMITS_${snake(name)}`
    return 'count' in rate
      ? [
          {
            name,
            setting: `${stem}_PER_${windows.get(rate.perMs as 1000) ?? `${rate.perMs}_MS`}`,
            part: 'count',
            value: rate.count,
          },
        ]
      : [
          { name, setting: `${stem}_PER_SECOND`, part: 'perSecond', value: rate.perSecond },
          { name, setting: `${stem}_BURST`, part: 'burst', value: rate.burst },
        ]
  })
}

export function readRates(plugin: Plugin, env: Environment): Record<string, Rate> {
  const rates: Record<string, Record<string, number>> = Object.fromEntries(
    Object.entries(plugin.limits ?? {}).map(([name, { about: _, ...rate }]) => [name, rate]),
  )
  for (const { name, setting, part } of ratesOf(plugin)) {
    if (!env[setting]) continue
    const value = Number(env[setting])
    if (!Number.isFinite(value) || value <= 0)
      throw fault('INVALID_FIELD', { field: setting, why: 'must be a number above 0' })
    rates[name]![part] = value
  }
  return rates as Record<string, Rate>
}
