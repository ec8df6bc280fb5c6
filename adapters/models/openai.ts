// Models behind an OpenAI-compatible endpoint (OpenAI, vLLM, Ollama, llama.cpp): openai:?model=… or
// openai:http://127.0.0.1:11434/v1?model=…
import { defineAdapter } from '#ports/adapter.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { Api } from './lib/catalogue.ts'
import type { Vendor } from './lib/endpoint.ts'
import { openaiChat } from './openai/openai-chat.ts'
import { openaiResponses } from './openai/openai-responses.ts'
import { createProvider, type ProviderSettings, type Surroundings } from './lib/provider.ts'
import { choiceOption, commonOptions, flagOption, settingsOf } from './lib/url-options.ts'

export const vendor: Vendor = {
  name: 'OpenAI',
  baseUrl: 'https://api.openai.com/v1',
  keyName: 'OPENAI_API_KEY',
}
const defaults = { contextTokens: 8192, outputTokensMax: 2048 }

/** Servers other than OpenAI's speak chat completions. */
export const apiOf = (asked: 'chat' | 'responses' | undefined, atVendor: boolean): Api =>
  asked ?? (atVendor ? 'responses' : 'chat')

export async function openai(
  {
    api,
    atVendor,
    ...settings
  }: ProviderSettings & { readonly api: Api; readonly atVendor: boolean },
  { clock, log }: Surroundings,
): Promise<ModelProvider> {
  // Loaded only when it is used.
  const { default: OpenAI } = await import('openai')
  // Sets every option, so that the library reads no environment variables. It does not retry or
  // log.
  const client = new OpenAI({
    baseURL: settings.baseUrl,
    apiKey: settings.apiKey ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    ...(settings.apiKey === undefined
      ? { defaultHeaders: { authorization: null } }
      : { defaultHeaders: { authorization: `Bearer ${settings.apiKey}` } }),
    maxRetries: 0,
    timeout: 2 ** 31 - 1,
    logLevel: 'off',
  })
  return createProvider(
    api === 'responses'
      ? openaiResponses(client, { who: settings.name, clock })
      : openaiChat(client, { atVendor }),
    settings,
    { clock, log },
  )
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'openai',
  options: {
    ...commonOptions(defaults, vendor),
    api: 'chat or responses; default responses at OpenAI, elsewhere chat.',
    background:
      '1: the provider keeps an answer and goes on with it when the connection breaks ' +
      '(api=responses); default 0.',
    effort:
      'minimal, low, medium or high: what is asked for when a run wants deliberation; ' +
      'default medium.',
    prefill_as:
      'plain, vllm or prefix: how the beginning of an answer is handed over; default ' +
      'plain, as llama.cpp and Ollama take it.',
  },
  open: async ({ url, secret, clock, log }) => {
    const api = choiceOption(url, 'api', ['chat', 'responses'])
    const effort = choiceOption(url, 'effort', ['minimal', 'low', 'medium', 'high'])
    const prefillAs = choiceOption(url, 'prefill_as', ['plain', 'vllm', 'prefix'])
    const more = {
      ...(effort === undefined ? {} : { reasoning_effort: effort }),
      ...(prefillAs === undefined ? {} : { prefill_as: prefillAs }),
    }
    return openai(
      settingsOf(
        { url, secret },
        {
          vendor,
          defaults,
          elsewhere: 'OpenAI-compatible',
          api: atVendor => apiOf(api, atVendor),
          more,
          resume: flagOption(url, 'background', false),
        },
      ),
      { clock, log },
    )
  },
})
