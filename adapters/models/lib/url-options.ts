// A provider with one model, from the URL of a setting:
// `openai:http://127.0.0.1:11434/v1?model=llama3.2`.
import { fault } from '#contracts/faults.ts'
import type { AdapterContext } from '#ports/adapter.ts'
import { wholeOption } from '../../_shared/options.ts'
import { servedModel, type Api, type ModelEntry } from './catalogue.ts'
import {
  concurrencyUsual,
  concurrencyMax,
  endpointOf,
  timeoutBounds,
  timeoutMs,
  type Vendor,
} from './endpoint.ts'
import type { ProviderSettings } from './provider.ts'

type Defaults = { readonly contextTokens: number; readonly outputTokensMax: number }

/** The options that both kinds of provider share, with the defaults of one kind. */
export const commonOptions = (
  { contextTokens, outputTokensMax }: Defaults,
  { name, keyName }: Vendor,
) => ({
  model: "The provider's name of the model, also its key in the catalogue; required.",
  name: 'How people read it; default: the model.',
  context: `Tokens that the model takes in, its answer included; default ${contextTokens}.`,
  output_max:
    'Tokens of the longest answer: what a run may cost is held before it starts; default ' +
    `${outputTokensMax}.`,
  input_price: 'Whole credits for a thousand tokens in; default 0.',
  output_price: 'Whole credits for a thousand tokens out; default 1.',
  minimum: 'The least that a run costs, in credits; default 1.',
  tools: '0: the model cannot call tools; default 1.',
  reasoning: '1: the model can deliberate before it answers; default 0.',
  prefill: '1: the model goes on after a given beginning of its answer; default 0.',
  concurrency: `Calls at a time, the others wait; default ${concurrencyUsual}.`,
  timeout_ms:
    'How long the provider may be silent, before its first byte and between two; default ' +
    `${timeoutMs}.`,
  key:
    'The name of the variable that holds the key (or of <name>_FILE, a file that does); ' +
    `default ${keyName} at ${name}, elsewhere none.`,
})

export const flagOption = (url: URL, name: string, otherwise: boolean): boolean =>
  wholeOption(url, name, otherwise ? 1 : 0, { max: 1 }) === 1
export function choiceOption<T extends string>(
  url: URL,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = url.searchParams.get(name)
  if (value !== null && !choices.includes(value as T))
    throw fault('INVALID_FIELD', { field: name, why: `must be ${choices.join(', ')}` })
  return (value as T | null) ?? undefined
}

type Kind = {
  readonly vendor: Vendor
  readonly defaults: Defaults
  /** The name of a provider that is not the vendor. */
  readonly elsewhere: string
  readonly api: (atVendor: boolean) => Api
  readonly more: Partial<ModelEntry>
  readonly resume?: boolean
}

/** The URL's option for each field of an entry, for refusals. */
const optionOf: Readonly<Record<string, string>> = {
  output_tokens_max: 'output_max',
  'supports.resume': 'background',
  'supports.prefill': 'prefill',
}

export function settingsOf(
  { url, secret }: Pick<AdapterContext, 'url' | 'secret'>,
  { vendor, defaults, elsewhere, api: apiOf, more, resume = false }: Kind,
): ProviderSettings & { readonly api: Api; readonly atVendor: boolean } {
  const { baseUrl, apiKey, atVendor } = endpointOf(
    {
      baseUrl: url.pathname || undefined,
      keyName: url.searchParams.get('key') ?? undefined,
      fields: { baseUrl: 'MODELS_URL', key: 'key' },
    },
    vendor,
    secret,
  )
  const id = url.searchParams.get('model') ?? ''
  if (id === '' || id.length > 200)
    throw fault('INVALID_FIELD', {
      field: 'model',
      why: 'must name the model, in at most 200 characters',
    })
  const name = url.searchParams.get('name') ?? undefined
  const provider = atVendor ? vendor.name : elsewhere
  const api = apiOf(atVendor)
  const entry: ModelEntry = {
    key: id,
    id,
    ...(name === undefined ? {} : { name }),
    ...more,
    context_tokens: wholeOption(url, 'context', defaults.contextTokens, { min: 1 }),
    output_tokens_max: wholeOption(url, 'output_max', defaults.outputTokensMax, { min: 1 }),
    price: {
      input_per_1k: wholeOption(url, 'input_price', 0),
      output_per_1k: wholeOption(url, 'output_price', 1),
      minimum: wholeOption(url, 'minimum', 1),
    },
    supports: {
      tools: flagOption(url, 'tools', true),
      reasoning: flagOption(url, 'reasoning', false),
      prefill: flagOption(url, 'prefill', false),
      resume,
    },
  }
  return {
    name: provider,
    baseUrl,
    apiKey,
    api,
    atVendor,
    concurrency: wholeOption(url, 'concurrency', concurrencyUsual, { min: 1, max: concurrencyMax }),
    timeoutMs: wholeOption(url, 'timeout_ms', timeoutMs, timeoutBounds),
    models: [
      servedModel(entry, {
        provider,
        api,
        isDefault: true,
        named: field => optionOf[field] ?? field,
      }),
    ],
  }
}
