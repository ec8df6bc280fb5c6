import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelProvider } from '#ports/models.ts'
import { hear, passing } from '../../test/support/model-servers/provider.ts'
import { startModelServer } from '../../test/support/model-servers/server.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { opening } from '../../test/conformance/opening.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import adapter from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'agent-platform-models-'))
const path = join(folder, 'models.json')
const chat = await startModelServer('chat', { key: 'chat-key' })
const messages = await startModelServer('messages')
const secrets: Record<string, string> = { CHAT_KEY: 'chat-key', OPENAI_API_KEY: 'openai-key' }

const price = { input_per_1k: 1, output_per_1k: 2, minimum: 3 }
const model = (key: string, more: object = {}) => ({
  key,
  id: `id-of-${key}`,
  context_tokens: 8000,
  output_tokens_max: 1000,
  price,
  ...more,
})
const file = (more: object = {}) => ({
  providers: [
    {
      name: 'Local',
      kind: 'openai',
      base_url: chat.base,
      api_key: 'CHAT_KEY',
      concurrency: 2,
      models: [
        model('local', { supports: { prefill: true } }),
        model('other', { supports: { tools: false } }),
      ],
    },
    {
      name: 'Claude',
      kind: 'anthropic',
      base_url: messages.base,
      timeout_ms: 5000,
      models: [
        model('claude', {
          name: 'Claude',
          description: 'Thinks before it speaks.',
          supports: { reasoning: true },
        }),
      ],
    },
    { name: 'Built in', kind: 'offline', models: [{ key: 'quoting', id: 'offline' }] },
    {
      name: 'Test',
      kind: 'scripted',
      models: [{ key: 'double', id: 'scripted', name: 'Double', price }],
    },
  ],
  default: 'local',
  ...more,
})
const open = (content: object | string, clock = systemClock()): Promise<ModelProvider> => {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return adapter.open(opening(`config:${path}`, { clock, secret: name => secrets[name] }))
}
const asked = { long: 'Tell me something long.', tool: 'Please call add.' }

modelsKit(test, 'config', { open: () => open(file()), ...asked })

test('one catalogue out of all, with the one default that is named', async () => {
  const provider = await open(file({ default: 'claude' }))
  const catalogue = await provider.catalogue()
  assert.equal(
    catalogue.map(({ key, name, provider: by, isDefault }) => [key, name, by, isDefault]),
    [
      ['local', 'local', 'Local', false],
      ['other', 'other', 'Local', false],
      ['claude', 'Claude', 'Claude', true],
      ['quoting', 'Offline', 'Built in', false],
      ['double', 'Double', 'Test', false],
    ],
  )
  assert.equal(catalogue[2], {
    key: 'claude',
    name: 'Claude',
    description: 'Thinks before it speaks.',
    provider: 'Claude',
    isDefault: true,
    contextTokens: 8000,
    outputTokensMax: 1000,
    price: { inputPer1k: 1, outputPer1k: 2, minimum: 3 },
    supports: { tools: true, reasoning: true, prefill: false, resume: false },
  })
  assert.equal(catalogue[1]!.supports, {
    tools: false,
    reasoning: false,
    prefill: false,
    resume: false,
  })
  assert.equal(catalogue[4]!.price, { inputPer1k: 1, outputPer1k: 2, minimum: 3 })
  await provider.close()
})
test('the example beside the adapter opens', async () => {
  const provider = await adapter.open(
    opening(`config:${import.meta.dirname}/example.json`, {
      clock: systemClock(),
      secret: () => 'key',
    }),
  )
  assert.equal(
    (await provider.catalogue()).map(({ key, isDefault, supports: { resume } }) => [
      key,
      isDefault,
      resume,
    ]),
    [
      ['large', false, true],
      ['claude', false, false],
      ['small', true, false],
      ['offline', false, false],
    ],
  )
  await provider.close()
})
test('each key goes to its provider, under the name that it has there', async () => {
  const provider = await open(file())
  await deltasOf(provider, 'x', { model: 'other' })
  assert.is(chat.calls().at(-1)!.body['model'], 'id-of-other')
  assert.is(chat.calls().at(-1)!.headers.authorization, 'Bearer chat-key')
  await deltasOf(provider, 'x', { model: 'claude' })
  assert.is(messages.calls().at(-1)!.body['model'], 'id-of-claude')
  assert.is(
    messages.calls().at(-1)!.headers['x-api-key'],
    undefined,
    'a key goes where it is named and nowhere else',
  )
  assert.is(textOf(await deltasOf(provider, '[[text=one two]]', { model: 'double' })), 'one two')
  assert.match(textOf(await deltasOf(provider, 'Hello', { model: 'quoting' })), 'offline model')
  assert.match(
    await refuses('INVALID_FIELD', () => deltasOf(provider, 'x', { model: 'offline' })),
    /^model:/,
  )
  await provider.close()
})
test('a provider that is down is named and does not take the others with it', async () => {
  const clock = manualClock()
  const down = file()
  const gone = await startModelServer('messages')
  await gone.stop()
  Object.assign(down.providers[1]!, { base_url: gone.base })
  const provider = await open(down, clock)
  const detail = await refuses('UNAVAILABLE', () => provider.ping())
  assert.match(detail, /1 of 4 cannot serve: the connection to Claude failed/)
  assert.not.match(detail, /Local|127/)
  assert.match(
    (await passing(clock, hear(provider, { model: 'claude' }))).error!.message,
    /the connection to Claude failed \(ECONNREFUSED\)/,
  )
  assert.is((await passing(clock, hear(provider, { model: 'local' }))).error, undefined)
  await provider.close()
  await (await open(file())).ping()
})
test('what is wrong in the file is refused by its place, and never quoted', async () => {
  const wrong = (place: string, value?: unknown): object => {
    const changed = JSON.parse(JSON.stringify(file())) as Record<string, unknown>
    const fields = place.split('.')
    const last = fields.pop()!
    const parent = fields.reduce((part, field) => part[field] as typeof changed, changed)
    parent[last] = value
    return changed
  }
  for (const [content, said] of [
    ['{"providers": [sk-planted', /^MODELS_URL: config: .* is not valid JSON/],
    ['[]', /^MODELS_URL: must be object/],
    [{}, /^providers: is required/],
    [{ ...file(), extra: 1 }, /^extra: is not a known field/],
    [{ ...file(), providers: [] }, /^providers: must NOT have fewer/],
    [
      wrong('providers.1.kind', 'planted'),
      /^providers\[1\]\.kind: must be one of openai, anthropic, offline, scripted/,
    ],
    [wrong('providers.0.apikey', 'planted'), /^providers\[0\]\.apikey: is not a known field/],
    [wrong('providers.0.models.1.price'), /^providers\[0\]\.models\[1\]\.price: is required/],
    [
      wrong('providers.0.models.1.price.minimum', -1),
      /^providers\[0\]\.models\[1\]\.price\.minimum: must be >= 0/,
    ],
    [
      wrong('providers.0.models.0.price.output_per_1k', 0.5),
      /^providers\[0\]\.models\[0\]\.price\.output_per_1k: must be integer/,
    ],
    [
      wrong('providers.0.models.1.key', 'claude'),
      /^providers\[1\]\.models\[0\]\.key: is the key of another/,
    ],
    [wrong('providers.1.name', 'Local'), /^providers\[1\]\.name: is the name of another/],
    [wrong('default', 'planted'), /^default: must be the key of one/],
    [
      wrong('providers.0.api_key', 'NOT_SET'),
      /^providers\[0\]\.api_key: the variable NOT_SET is not set/,
    ],
    [
      wrong('providers.0.api_key', 'sk-planted'),
      /^providers\[0\]\.api_key: must be the name of a variable, not the key itself/,
    ],
    [
      wrong('providers.1.base_url'),
      /^providers\[1\]\.api_key: the variable ANTHROPIC_API_KEY is not set/,
    ],
    [
      wrong('providers.0.base_url', 'http://planted:planted@a.test'),
      /^providers\[0\]\.base_url: must hold no user/,
    ],
    [
      wrong('providers.0.models.0.supports.resume', true),
      /^providers\[0\]\.models\[0\]\.supports\.resume: needs api responses/,
    ],
    [
      wrong('providers.0.models.0.output_tokens_max', 9000),
      /^providers\[0\]\.models\[0\]\.output_tokens_max: must not be above/,
    ],
    [
      wrong('providers.2.models.0.id', 'planted'),
      /^providers\[2\]\.models\[0\]\.id: offline has only offline/,
    ],
    [
      wrong('providers.2.base_url', 'http://a.test'),
      /^providers\[2\]\.base_url: is not a known field/,
    ],
  ] as const) {
    const detail = await refuses('INVALID_FIELD', () => open(content))
    assert.match(detail, said)
    assert.not.match(detail, 'planted')
  }
  assert.match(
    await refuses('INVALID_FIELD', () =>
      adapter.open(opening(`config:${folder}/none.json`, { clock: systemClock() })),
    ),
    /^MODELS_URL: .*ENOENT/,
  )
  assert.match(
    await refuses('INVALID_FIELD', () =>
      adapter.open(opening('config:', { clock: systemClock() })),
    ),
    /^MODELS_URL: config: needs the path/,
  )
})
test.after(async () => {
  rmSync(folder, { recursive: true, force: true })
  await chat.stop()
  await messages.stop()
})
test.run()
