// Several providers as one, named in a JSON file: config:./models.json
import { resolve } from 'node:path'
import { fault, hasCode } from '#contracts/faults.ts'
import { defineAdapter, type AdapterContext } from '#ports/adapter.ts'
import type { Model, ModelProvider } from '#ports/models.ts'
import { closable } from '../_shared/closable.ts'
import { modelOf } from './lib/model-calls.ts'
import { servedModel, type Api } from './lib/catalogue.ts'
import { readConfigFile, type ConfigFile, type ProviderEntry } from './config/config-file.ts'
import { concurrencyUsual, endpointOf, timeoutMs, type Vendor } from './lib/endpoint.ts'
import type { ProviderSettings } from './lib/provider.ts'

const serviceName = 'The model providers'
type Deps = Pick<AdapterContext, 'secret' | 'clock' | 'log'>
/**
 * A provider with its part of the catalogue, under the file's keys. `idOf` maps a key to the
 * provider's own name of the model.
 */
type Part = {
  readonly name: string
  readonly provider: ModelProvider
  readonly models: readonly Model[]
  readonly idOf: (key: string) => string
}
type RemoteEntry = Extract<ProviderEntry, { kind: 'openai' | 'anthropic' }>

function remoteSettings(
  entry: RemoteEntry,
  at: number,
  {
    vendor,
    apiOf,
    fallback,
    secret,
  }: {
    vendor: Vendor
    apiOf: (atVendor: boolean) => Api
    fallback: string
    secret: Deps['secret']
  },
): ProviderSettings & { api: Api; atVendor: boolean } {
  const place = `providers[${at}]`
  const { baseUrl, apiKey, atVendor } = endpointOf(
    {
      baseUrl: entry.base_url,
      keyName: entry.api_key,
      fields: { baseUrl: `${place}.base_url`, key: `${place}.api_key` },
    },
    vendor,
    secret,
  )
  const api = apiOf(atVendor)
  return {
    name: entry.name,
    baseUrl,
    apiKey,
    api,
    atVendor,
    concurrency: entry.concurrency ?? concurrencyUsual,
    timeoutMs: entry.timeout_ms ?? timeoutMs,
    models: entry.models.map((model, n) =>
      servedModel(model, {
        provider: entry.name,
        api,
        isDefault: model.key === fallback,
        named: field => `${place}.models[${n}].${field}`,
      }),
    ),
  }
}

/** Only the kinds that the file names are loaded. */
async function openPart(
  entry: ProviderEntry,
  at: number,
  fallback: string,
  { secret, ...surroundings }: Deps,
): Promise<Part> {
  if (entry.kind === 'openai') {
    const { openai, vendor, apiOf } = await import('./openai.ts')
    const settings = remoteSettings(entry, at, {
      vendor,
      apiOf: atVendor => apiOf(entry.api, atVendor),
      fallback,
      secret,
    })
    const provider = await openai(settings, surroundings)
    return { name: entry.name, provider, models: await provider.catalogue(), idOf: key => key }
  }
  if (entry.kind === 'anthropic') {
    const { anthropic, vendor } = await import('./anthropic.ts')
    const provider = await anthropic(
      remoteSettings(entry, at, { vendor, apiOf: () => 'messages', fallback, secret }),
      surroundings,
    )
    return { name: entry.name, provider, models: await provider.catalogue(), idOf: key => key }
  }
  const provider =
    entry.kind === 'offline'
      ? (await import('./offline.ts')).offline(surroundings)
      : (await import('./scripted.ts')).scripted(surroundings)
  const own = await provider.catalogue()
  const models = entry.models.map(({ key, id, name, description, price }, n): Model => {
    const model = own.find(one => one.key === id)
    if (model === undefined)
      throw fault('INVALID_FIELD', {
        field: `providers[${at}].models[${n}].id`,
        why: `${entry.kind} has only ${own.map(one => one.key).join(', ')}`,
      })
    return {
      ...model,
      key,
      provider: entry.name,
      isDefault: key === fallback,
      name: name ?? model.name,
      description: description ?? model.description,
      price:
        price === undefined
          ? model.price
          : {
              inputPer1k: price.input_per_1k,
              outputPer1k: price.output_per_1k,
              minimum: price.minimum,
            },
    }
  })
  const ids = new Map(entry.models.map(({ key, id }) => [key, id]))
  return { name: entry.name, provider, models, idOf: key => ids.get(key)! }
}

function checkKeys({ providers, default: fallback }: ConfigFile): void {
  const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })
  const keys = new Set<string>()
  const names = new Set<string>()
  for (const [at, { name, models }] of providers.entries()) {
    if (names.has(name))
      throw refuse(`providers[${at}].name`, 'is the name of another provider too')
    names.add(name)
    for (const [n, { key }] of models.entries()) {
      if (keys.has(key))
        throw refuse(`providers[${at}].models[${n}].key`, 'is the key of another model too')
      keys.add(key)
    }
  }
  if (!keys.has(fallback)) throw refuse('default', 'must be the key of one of the models')
}

export async function configured(file: ConfigFile, deps: Deps): Promise<ModelProvider> {
  checkKeys(file)
  const parts: Part[] = []
  try {
    for (const [at, entry] of file.providers.entries())
      parts.push(await openPart(entry, at, file.default, deps))
  } catch (error) {
    await Promise.all(parts.map(({ provider }) => provider.close()))
    throw error
  }
  const { check, shut } = closable(serviceName)
  const catalogue = parts.flatMap(({ models }) => models)
  return {
    async catalogue() {
      check()
      return catalogue
    },
    async *stream(request) {
      check()
      const { key } = modelOf(catalogue, request.model)
      const { provider, idOf } = parts.find(({ models }) =>
        models.some(model => model.key === key),
      )!
      yield* provider.stream({ ...request, model: idOf(key) })
    },
    async ping() {
      check()
      const answers = await Promise.allSettled(parts.map(({ provider }) => provider.ping()))
      const down = answers.flatMap((answer, at) =>
        answer.status === 'fulfilled'
          ? []
          : [
              hasCode(answer.reason, 'UNAVAILABLE')
                ? String(answer.reason.values['why'])
                : parts[at]!.name,
            ],
      )
      if (down.length > 0)
        throw fault('UNAVAILABLE', {
          what: serviceName,
          why: `${down.length} of ${parts.length} cannot serve: ${down.join('; ')}`,
        })
    },
    async close() {
      if (!shut()) return
      await Promise.all(parts.map(({ provider }) => provider.close()))
    },
  }
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'config',
  open: async ({ url, secret, clock, log }) => {
    const path = decodeURIComponent(url.pathname)
    if (path === '')
      throw fault('INVALID_FIELD', {
        field: 'MODELS_URL',
        why: 'config: needs the path of a JSON file',
      })
    return configured(readConfigFile(resolve(path)), { secret, clock, log })
  },
})
