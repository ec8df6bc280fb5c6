// A language model on strings: the test writes what it answers to which request, and holds it back
// for as long as it likes.
import type {
  Model,
  ModelDelta,
  ModelProvider,
  ModelRequest,
  ToolCall,
  Usage,
} from '#ports/models.ts'

export type Deltas = readonly ModelDelta[]
/** What one call of the model answers, batch by batch; `asked` counts the calls, from 0. */
export type Play = (
  request: ModelRequest,
  asked: number,
) => Iterable<Deltas> | AsyncIterable<Deltas>
export type ScriptedModel = ReturnType<typeof scriptedModel>

const usual: Usage = { inputTokens: 10, outputTokens: 10 }
export const text = (said: string): ModelDelta => ({ type: 'text', text: said })
export const ends = (
  reason: 'stop' | 'tool_calls' | 'length' | 'filtered' = 'stop',
  usage = usual,
): ModelDelta[] => [
  { type: 'usage', usage },
  { type: 'finish', reason },
]
export const says = (said: string, usage = usual): Deltas[] => [
  [text(said), ...ends('stop', usage)],
]
export const called = (id: string, name: string, args: ToolCall['arguments'] = {}): ModelDelta => ({
  type: 'tool_call',
  call: { id, name, arguments: args },
})
export const calls = (...made: ModelDelta[]): Deltas[] => [[...made, ...ends('tool_calls')]]
/** A door: `passed` resolves once it is open. */
export function door() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: () => resolve() }
}

export const lastWords = ({ messages }: ModelRequest) =>
  messages.findLast(({ role }) => role === 'user')!.content
export const resultsIn = ({ messages }: ModelRequest) =>
  messages.flatMap(message => (message.role === 'tool' ? [message.content] : []))
export const offered = ({ tools = [] }: ModelRequest) => tools.map(({ name }) => name)

export function scriptedModel(
  play: Play,
  {
    supports,
    ...about
  }: Partial<Omit<Model, 'supports'>> & { supports?: Partial<Model['supports']> } = {},
) {
  const requests: ModelRequest[] = []
  let heard: (() => void)[] = []
  const model: Model = {
    key: 'puppet',
    name: 'Puppet',
    description: 'A model in a test.',
    provider: 'test',
    isDefault: true,
    contextTokens: 100_000,
    outputTokensMax: 1000,
    price: { inputPer1k: 0, outputPer1k: 1, minimum: 1 },
    ...about,
    supports: { tools: true, reasoning: true, prefill: true, resume: false, ...supports },
  }
  const provider: ModelProvider = {
    catalogue: async () => [model],
    async *stream(request) {
      const asked = requests.push(request) - 1
      const { signal } = request
      for (const hear of heard.splice(0)) hear()
      signal.throwIfAborted()
      const ended = new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      )
      ended.catch(() => undefined)
      const played = play(request, asked)
      const batches =
        Symbol.asyncIterator in played ? played[Symbol.asyncIterator]() : played[Symbol.iterator]()
      for (;;) {
        const next = await Promise.race([batches.next(), ended])
        if (next.done) return
        yield next.value
      }
    },
    ping: async () => undefined,
    close: async () => undefined,
  }
  return {
    provider,
    /** Every call so far, in order. */
    requests,
    /** Resolves when it was called so often; ten seconds without it are a failure. */
    async asked(times: number): Promise<void> {
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(
        () => reject(new Error(`the model was called ${requests.length} times, not ${times}`)),
        10_000,
      )
      try {
        while (requests.length < times)
          await Promise.race([late, new Promise<void>(resolve => heard.push(resolve))])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}
