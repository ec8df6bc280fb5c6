// A model provider to copy. `parrot:` says what it is told, word by word.
//   ADAPTERS_DIR=<the folder above this one> MODELS_URL=parrot:?pause_ms=20
import { fault } from 'agent-platform/faults'
import { defineAdapter } from 'agent-platform/ports/adapter'

const contextTokens = 10_000
const outputTokensMax = 2000
const tokensIn = text => Math.max(1, Math.ceil(text.length / 4))

export default defineAdapter({
  port: 'models',
  scheme: 'parrot',
  options: { pause_ms: 'Between two words, in milliseconds; default 0.' },
  async open({ url, clock }) {
    const pauseMs = Number(url.searchParams.get('pause_ms') ?? 0)
    const closing = new AbortController()
    const open = () => {
      if (closing.signal.aborted)
        throw fault('UNAVAILABLE', { what: 'The parrot', why: 'it is closed' })
    }
    const model = {
      key: 'parrot',
      name: 'Parrot',
      provider: 'parrot',
      isDefault: true,
      contextTokens,
      outputTokensMax,
      description: 'No language model: it says what it is told, word by word.',
      price: { inputPer1k: 0, outputPer1k: 0, minimum: 1 },
      // The kit asks for what is declared here. The platform never asks for what is not.
      supports: { tools: false, reasoning: false, prefill: false, resume: false },
    }
    return {
      async catalogue() {
        open()
        return [model]
      },
      async *stream({
        model: key,
        messages,
        outputTokensMax: most = outputTokensMax,
        signal: caller,
      }) {
        open()
        if (key !== model.key)
          throw fault('INVALID_FIELD', {
            field: 'model',
            why: 'is not in the catalogue (GET /models)',
          })
        const signal = AbortSignal.any([caller, closing.signal])
        const words = messages.findLast(({ role }) => role === 'user').content.split(/(?<=\s)/)
        signal.throwIfAborted()
        for (const word of words.slice(0, most)) {
          if (pauseMs > 0) await clock.sleep(pauseMs, signal)
          signal.throwIfAborted()
          yield [{ type: 'text', text: word }]
        }
        signal.throwIfAborted()
        yield [
          {
            type: 'usage',
            usage: {
              inputTokens: messages.reduce((sum, { content }) => sum + tokensIn(content), 0),
              outputTokens: Math.min(words.length, most),
            },
          },
          { type: 'finish', reason: words.length > most ? 'length' : 'stop' },
        ]
      },
      ping: async () => open(),
      close: async () =>
        closing.abort(fault('UNAVAILABLE', { what: 'The parrot', why: 'it is closed' })),
    }
  },
})
