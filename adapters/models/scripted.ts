// A model that does exactly what it is told, for tests and benchmarks: it thinks nothing and costs next to nothing to call.
import { fault, type Fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelDelta, ModelProvider, ModelRequest } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'
import { closedFault, gate } from '../_shared/gate.ts'
import { inputTokensOf, lastUserText, modelOf, toolResultsSince } from '../_shared/model-calls.ts'

const WHAT = 'The scripted model'
const TOKENS_MAX = 1_000_000
const REMEMBERED_MAX = 1000
/** What a run may cost is held before it starts: a cap far above what is written would hold credits that are never taken. */
const ANSWER_TOKENS_MIN = 1000

/** Parameters of the URL, and directives `[[name=value]]` in the user's message, which override them for that call. */
const options = {
  tokens: 'How many tokens it writes; default 20.',
  interval_ms: 'Pause before each token; 0 (the default) sends them in two batches.',
  text: 'Writes this text, a word a token, instead of token00 token01 ….',
  reasoning: 'Tokens of reasoning before the answer; default 3 when the request asks for reasoning, else 0.',
  tool: 'Calls this tool first: `name` or `name {"json":1}`; writes its tokens once the tool has answered.',
  fail_after: 'Fails with MODEL_FAILED when this many tokens of the answer stand, unless the call began with as many (prefill).',
  fail_calls: 'Only the first so many calls with the same user message fail; default all.',
  fail_rate: 'The share of calls, 0 to 1, that fail half way; default 0.',
  stall_after: 'Says nothing more when this many tokens stand, until it is aborted; the same exception as fail_after.',
  prefill: '0: the catalogue does not offer prefill; default 1.',
}
type Name = keyof typeof options
type Settings = Partial<Record<Name, string>>
type Script = { readonly tokens: readonly string[]; readonly from: number; readonly reasoning: number; readonly intervalMs: number; readonly failAt: number; readonly stallAt: number; readonly cut: boolean }

/** A JSON value may hold `]]`; the directive's own end is followed by nothing that would go on with JSON. */
const DIRECTIVE = /\[\[([a-z_]+)=([\s\S]*?)\]\](?![\]},"])/g

function directivesIn(message: string): Settings {
  if (!message.includes('[[')) return {}
  return Object.fromEntries([...message.matchAll(DIRECTIVE)].filter(([, name]) => Object.hasOwn(options, name!)).map(([, name, value]) => [name, value]))
}
function number(settings: Settings, name: Name, otherwise: number): number {
  const text = settings[name]
  if (text === undefined) return otherwise
  const value = text.trim() === '' ? NaN : Number(text)
  if (!(value >= 0 && value <= TOKENS_MAX)) throw fault('INVALID_FIELD', { field: name, why: `must be a number from 0 to ${TOKENS_MAX}` })
  return value
}
function toolCall(spec: string, id: string): ModelDelta {
  const [, name = '', json] = /^\s*(\S+)\s*([\s\S]*)$/.exec(spec) ?? []
  return { type: 'tool_call', call: { id: `call_${id}`, name, arguments: json ? (JSON.parse(json) as Json) : {} } }
}

function scriptOf(settings: Settings, request: ModelRequest, fails: boolean): Script {
  const words = settings.text?.match(/\S+\s*/g) ?? Array.from({ length: number(settings, 'tokens', 20) }, (_, n) => `token${n < 10 ? '0' : ''}${n} `)
  let from = 0
  if (request.prefill !== undefined) {
    let standing = ''
    while (from < words.length && request.prefill.length > standing.length) standing += words[from++]
    if (standing !== request.prefill) from = 0
  }
  // What began with as many tokens is past the spot; at 0 there is no past.
  const spot = (name: Name): number => {
    const at = number(settings, name, Infinity)
    return at === 0 || from < at ? at : Infinity
  }
  const most = from + (request.outputTokensMax ?? Infinity)
  return {
    tokens: words.length > most ? words.slice(0, most) : words, from, cut: words.length > most,
    reasoning: number(settings, 'reasoning', request.reasoning === true ? 3 : 0),
    intervalMs: number(settings, 'interval_ms', 0),
    failAt: fails ? spot('fail_after') : Infinity, stallAt: spot('stall_after'),
  }
}

/** The batches of one answer: with no pause, the first token and then all the others, as a fast provider's wire would bring them. */
async function* play(script: Script, { input, signal, clock, failed }: { input: number; signal: AbortSignal; clock: Clock; failed: () => Fault }): AsyncGenerator<readonly ModelDelta[]> {
  const { tokens, from, intervalMs, failAt, stallAt, reasoning } = script
  const stop = Math.min(tokens.length, failAt, stallAt)
  if (reasoning > 0) yield Array.from({ length: reasoning }, (_, n): ModelDelta => ({ type: 'reasoning', text: `thought${n} ` }))
  for (let at = from, size = 1; at < stop; at += size, size = intervalMs > 0 ? 1 : stop) {
    if (intervalMs > 0) await clock.sleep(intervalMs, signal)
    const batch: ModelDelta[] = []
    for (let n = at; n < Math.min(stop, at + size); n++) batch.push({ type: 'text', text: tokens[n]! })
    signal.throwIfAborted()
    yield batch
  }
  signal.throwIfAborted()
  if (stallAt <= Math.min(tokens.length, failAt)) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
  if (failAt <= tokens.length) throw failed()
  yield [{ type: 'usage', usage: { inputTokens: input, outputTokens: tokens.length - from + reasoning } }, { type: 'finish', reason: script.cut ? 'length' : 'stop' }]
}

export function scripted({ settings = {}, clock }: { settings?: Settings; clock: Clock }): ModelProvider {
  const models: readonly Model[] = [{
    key: 'scripted', name: 'Scripted', provider: 'scripted', isDefault: true,
    description: 'A test double, no language model: it writes numbered tokens at the pace that it is told.',
    contextTokens: TOKENS_MAX, outputTokensMax: Math.max(ANSWER_TOKENS_MIN, number(settings, 'tokens', 20)),
    price: { inputPer1k: 0, outputPer1k: 1, minimum: 1 },
    supports: { tools: true, reasoning: true, prefill: settings.prefill !== '0', resume: false },
  }]
  const { check, shut } = gate(WHAT)
  const closing = new AbortController()
  const failures = new Map<string, number>()

  /** Counts the failures of a message only where a number of them was asked for. */
  const fails = (asked: Settings, message: string): boolean => {
    if (asked.fail_after === undefined || asked.fail_calls === undefined) return true
    const before = failures.get(message) ?? 0
    failures.delete(message)
    failures.set(message, before + 1)
    if (failures.size > REMEMBERED_MAX) failures.delete(failures.keys().next().value!)
    return before < number(asked, 'fail_calls', 0)
  }
  return {
    async catalogue() {
      check()
      return models
    },
    async *stream(request) {
      check()
      modelOf(models, request.model)
      request.signal.throwIfAborted()
      const message = lastUserText(request.messages)
      const asked: Settings = { ...settings, ...directivesIn(message) }
      const input = inputTokensOf(request)
      if (asked.tool !== undefined && toolResultsSince(request.messages).length === 0) {
        yield [toolCall(asked.tool, clock.id()), { type: 'usage', usage: { inputTokens: input, outputTokens: 1 } }, { type: 'finish', reason: 'tool_calls' }]
        return
      }
      const script = scriptOf(asked, request, fails(asked, message))
      const rate = number(asked, 'fail_rate', 0)
      const failing = rate > 0 && clock.random() < rate ? { ...script, failAt: Math.floor((script.from + script.tokens.length) / 2) } : script
      // One signal for two reasons, made only where there is something to wait for.
      const waits = failing.intervalMs > 0 || failing.stallAt !== Infinity
      const signal = waits ? AbortSignal.any([request.signal, closing.signal]) : request.signal
      yield* play(failing, { input, signal, clock, failed: () => fault('MODEL_FAILED', { why: 'it was told to fail' }) })
    },
    async ping() {
      check()
    },
    async close() {
      if (shut()) closing.abort(closedFault(WHAT))
    },
  }
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'scripted',
  options,
  open: async ({ url, clock }) => {
    const settings: Settings = Object.fromEntries(url.searchParams)
    for (const name of ['tokens', 'interval_ms', 'reasoning', 'fail_after', 'fail_calls', 'fail_rate', 'stall_after'] as const) number(settings, name, 0)
    return scripted({ settings, clock })
  },
})
