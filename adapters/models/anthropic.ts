// Claude models: anthropic:?model=…, or another endpoint that speaks the same:
// anthropic:https://gateway.example/?model=…
import { defineAdapter } from '#ports/adapter.ts'
import type { ModelProvider } from '#ports/models.ts'
import { anthropicMessages } from './anthropic/anthropic-messages.ts'
import type { Vendor } from './lib/endpoint.ts'
import { createProvider, type ProviderSettings, type Surroundings } from './lib/provider.ts'
import { wholeOption } from '../_shared/options.ts'
import { commonOptions, settingsOf } from './lib/url-options.ts'

export const vendor: Vendor = {
  name: 'Anthropic',
  baseUrl: 'https://api.anthropic.com',
  keyName: 'ANTHROPIC_API_KEY',
}
const defaults = { contextTokens: 200_000, outputTokensMax: 8192 }

export async function anthropic(
  settings: ProviderSettings,
  surroundings: Surroundings,
): Promise<ModelProvider> {
  // Loaded only when it is used.
  const { default: Anthropic } = await import('@anthropic-ai/sdk')
  // Sets every option, so that the library looks for no credentials of its own. It does not retry,
  // log or trace.
  const client = new Anthropic({
    baseURL: settings.baseUrl,
    apiKey: settings.apiKey ?? 'none',
    webhookKey: null,
    openTelemetry: false,
    defaultHeaders: { 'x-api-key': settings.apiKey ?? null, authorization: null },
    maxRetries: 0,
    timeout: 2 ** 31 - 1,
    logLevel: 'off',
  })
  return createProvider(anthropicMessages(client), settings, surroundings)
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'anthropic',
  options: {
    ...commonOptions(defaults, vendor),
    thinking_tokens:
      'Tokens that older models may deliberate for, 1024 at least; default: the model ' +
      'decides (adaptive thinking).',
  },
  open: async ({ url, secret, clock, log }) => {
    const thinking = url.searchParams.has('thinking_tokens')
      ? { thinking_tokens: wholeOption(url, 'thinking_tokens', 0, { min: 1024 }) }
      : {}
    return anthropic(
      settingsOf(
        { url, secret },
        {
          vendor,
          defaults,
          elsewhere: 'Anthropic-compatible',
          api: () => 'messages',
          more: thinking,
        },
      ),
      { clock, log },
    )
  },
})
