import { Type as t } from 'typebox'
import { contract, filled, named, page, tagged } from './contract.ts'

/** Memory and time that a plugin's thread may use. */
export const bounds = {
  memory_mb: filled(
    t.Integer({
      minimum: 16,
      maximum: 65_536,
      default: 128,
      description:
        'MiB of heap, and of buffers beside it; a thread that takes more is ended and ' +
        'started again.',
    }),
  ),
  stall_ms: filled(
    t.Integer({
      minimum: 100,
      maximum: 600_000,
      default: 10_000,
      description: 'How long the thread may not answer before it is ended and started again.',
    }),
  ),
}
const Plugin = named(
  'Plugin',
  t.Object({
    name: t.String({ example: 'greeter', description: 'Empty where it could not be read.' }),
    version: t.String({ example: '1.0.0' }),
    state: t.Union([t.Literal('serving'), t.Literal('off'), t.Literal('failed')]),
    generation: t.Integer({
      minimum: 0,
      description: 'Grows whenever a plugin is built in this process; 0 where it does not serve.',
    }),
    source: t.String({
      example: '/plugins/greeter/plugin.js',
      description: 'The file with the plugin.',
    }),
    previous: t.Union([t.String(), t.Null()], {
      example: '0.9.0',
      description: 'The version that a rollback serves.',
    }),
    organisations: t.Union([t.Array(t.String({ format: 'uuid' })), t.Null()], {
      description: 'Those that it is limited to; null: everybody.',
    }),
    isolated: t.Union([t.Object({ memory_mb: t.Integer(), stall_ms: t.Integer() }), t.Null()], {
      example: null,
      description: 'The bounds of the thread that it runs in; null: it runs in the process.',
    }),
    detail: t.String({ example: '', description: 'Why it failed.' }),
  }),
)
const name = { name: t.String({ pattern: '^[a-z][a-z0-9-]{0,79}$', example: 'greeter' }) }
const row = { auth: 'operator', faults: ['PLUGIN_REFUSED'] } as const

/**
 * Operations for whoever runs the platform, with OPERATOR_TOKEN. A user's token is refused here.
 */
export const operator = tagged(
  'Plugins',
  contract({
    'GET /operator/plugins': {
      id: 'listPlugins',
      description: 'All that serve, were switched off or failed, on one page.',
      auth: 'operator',
      summary: 'List the plugins',
      reply: page(Plugin),
    },
    'POST /operator/plugins': {
      id: 'loadPlugin',
      ...row,
      summary: 'Load a plugin',
      description: 'It serves when this is answered, and is loaded again at the next start.',
      status: 201,
      reply: Plugin,
      body: t.Object(
        {
          source: t.String({
            example: '/plugins/greeter',
            minLength: 1,
            maxLength: 4096,
            description: 'A path on the server, or the name of a plugin that was unloaded.',
          }),
          isolated: t.Optional(
            t.Object(bounds, {
              additionalProperties: false,
              description: 'In a thread of its own.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
    },
    'POST /operator/plugins/{name}/reload': {
      id: 'reloadPlugin',
      description: 'The generation before serves on where the new one fails.',
      ...row,
      summary: 'Read a plugin again from its files',
      params: name,
      reply: Plugin,
    },
    'POST /operator/plugins/{name}/rollback': {
      id: 'rollBackPlugin',
      ...row,
      summary: 'Go back to the generation before',
      description: 'Asked again it goes forth.',
      params: name,
      reply: Plugin,
    },
    'PUT /operator/plugins/{name}/organisations': {
      id: 'setPluginOrganisations',
      ...row,
      summary: 'Say for whom a plugin is',
      description:
        'To other organisations its operations are unknown, and its tools are not offered.',
      params: name,
      reply: Plugin,
      body: t.Object(
        {
          organisations: t.Union(
            [t.Array(t.String({ format: 'uuid' }), { maxItems: 10_000 }), t.Null()],
            { description: 'null: everybody.' },
          ),
        },
        { additionalProperties: false },
      ),
    },
    'PUT /operator/plugins/{name}/isolation': {
      id: 'setPluginIsolation',
      ...row,
      summary: 'Say where a plugin runs',
      description:
        'In a thread of its own, a plugin that throws, loops or leaks harms nobody else: the ' +
        'thread is started again, and meanwhile what it offers answers 503. It is no ' +
        'security boundary.',
      params: name,
      reply: Plugin,
      body: t.Object(
        { in: t.Union([t.Literal('thread'), t.Literal('process')]), ...bounds },
        { additionalProperties: false },
      ),
    },
    'DELETE /operator/plugins/{name}': {
      id: 'unloadPlugin',
      ...row,
      summary: 'Unload a plugin',
      description: 'It stays out at the next start.',
      params: name,
      reply: 'none',
    },
  }),
)
