// The settings of the kernel itself: what each is called, may be, is by default, and is for.
import { Type as t } from 'typebox'

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
      'What this process does: api answers requests, worker drives runs and does jobs, all ' +
      'does both. A worker answers only /healthz, /readyz and /metrics. Several processes ' +
      'need a storage that they can share.',
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
      'Emails. outbox:<path> (default <DATA_DIR>/outbox), smtp://user:password@host:port ' +
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
    description: 'Within this time the head of a request must arrive.',
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
      'How long each step of loading a plugin may take, in milliseconds. Steps are its import, ' +
      'what it makes, its start, its health, and each undo.',
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
      'How often a plugin may end the process within PLUGIN_CRASH_HOURS. Then it is left out ' +
      'until it is loaded again or changes.',
  }),
  PLUGIN_CRASH_HOURS: t.Integer({
    default: 24,
    minimum: 1,
    description: 'How long it counts that a plugin ended the process, in hours.',
  }),
  DRAIN_MS: t.Integer({
    default: 5000,
    minimum: 0,
    description: 'How long a stop or a reload waits for what is under way.',
  }),
})
