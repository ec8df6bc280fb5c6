import { Type as t } from 'typebox'
import { contract, page } from './contract.ts'

const Plugin = t.Object({
  name: t.String({ description: 'Empty where it could not be read.' }), version: t.String(), state: t.Union([t.Literal('serving'), t.Literal('off'), t.Literal('failed')]),
  generation: t.Integer({ minimum: 0, description: 'Grows whenever a plugin is built in this process; 0 where it does not serve.' }),
  source: t.String({ description: 'The file with the plugin.' }), previous: t.Union([t.String(), t.Null()], { description: 'The version that a rollback serves.' }), organisations: t.Union([t.Array(t.String({ format: 'uuid' })), t.Null()], { description: 'Those that it is limited to; null: everybody.' }), detail: t.String({ description: 'Why it failed.' }),
})
const name = { name: t.String({ pattern: '^[a-z][a-z0-9-]{0,79}$', example: 'greeter' }) }
const row = { auth: 'operator', faults: ['PLUGIN_REFUSED'] } as const

/** For whoever runs the platform, with OPERATOR_TOKEN; no user's token is taken here. */
export const operator = contract({
  'GET /operator/plugins': { auth: 'operator', summary: 'List the plugins', reply: page(Plugin) },
  'POST /operator/plugins': { ...row, summary: 'Load a plugin', description: 'It serves when this is answered, and is loaded again at the next start.', status: 201, reply: Plugin, body: t.Object({ source: t.String({ minLength: 1, maxLength: 4096, description: 'A path on the server, or the name of a plugin that was unloaded.' }) }, { additionalProperties: false }) },
  'POST /operator/plugins/{name}/reload': { ...row, summary: 'Read a plugin again from its files', params: name, reply: Plugin },
  'POST /operator/plugins/{name}/rollback': { ...row, summary: 'Go back to the generation before', description: 'Asked again it goes forth.', params: name, reply: Plugin },
  'PUT /operator/plugins/{name}/organisations': { ...row, summary: 'Say for whom a plugin is', description: 'To other organisations its operations are unknown, and its tools are not offered.', params: name, reply: Plugin, body: t.Object({ organisations: t.Union([t.Array(t.String({ format: 'uuid' }), { maxItems: 10_000 }), t.Null()], { description: 'null: everybody.' }) }, { additionalProperties: false }) },
  'DELETE /operator/plugins/{name}': { ...row, summary: 'Unload a plugin', description: 'It stays out at the next start.', params: name, reply: 'none' },
})
