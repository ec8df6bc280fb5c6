// A model that follows a script, for tests and benchmarks. A call costs next to nothing.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelDelta, ModelProvider } from '#ports/models.ts'
import { closedFault, closable } from '../_shared/closable.ts'
import { inputTokensOf, lastUserText, modelOf } from './lib/model-calls.ts'
import {
  directivesIn,
  number,
  options,
  scriptOf,
  tokensMax,
  type Script,
  type Settings,
} from './scripted/script.ts'

const serviceName = 'The scripted model'
const rememberedMax = 1000
/**
 * The least cap of an answer, in tokens. A run holds credits for the cap, so a cap far above the
 * text would hold credits in vain.
 */
const answerTokensMin = 1000

type Stage = {
  readonly input: number
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The id of the answer, where it can be resumed. */
  readonly response: string | undefined
}
const failed = () => fault('MODEL_FAILED', { why: 'it was told to fail' })

/**
 * Yields the batches of one answer. Without pauses these are the first token, and then all others,
 * as from a fast provider.
 */
async function* play(
  script: Script,
  { input, signal, clock, response }: Stage,
): AsyncGenerator<readonly ModelDelta[]> {
  const { tokens, from, intervalMs, failAt, stallAt, reasoning, calls, opens } = script
  const stop = Math.min(tokens.length, failAt, stallAt)
  /**
   * `at` counts the tokens of text so far. Reasoning is not counted: a resumed answer does not
   * reason again.
   */
  const kept = (at: number): ModelDelta[] =>
    response === undefined ? [] : [{ type: 'checkpoint', checkpoint: { response, at } }]
  if (reasoning > 0)
    yield [
      ...Array.from(
        { length: reasoning },
        (_, n): ModelDelta => ({ type: 'reasoning', text: `thought${n} ` }),
      ),
      ...kept(from),
    ]
  for (let at = from, size = 1; at < stop; at += size, size = intervalMs > 0 ? 1 : stop) {
    if (intervalMs > 0) await clock.sleep(intervalMs, signal)
    const batch: ModelDelta[] = []
    for (let n = at; n < Math.min(stop, at + size); n++)
      batch.push({ type: 'text', text: tokens[n]! })
    batch.push(...kept(Math.min(stop, at + size)))
    signal.throwIfAborted()
    yield batch
  }
  signal.throwIfAborted()
  if (stallAt <= Math.min(tokens.length, failAt))
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    )
  if (failAt <= tokens.length) throw failed()
  if (opens !== undefined) {
    yield [{ type: 'tool_open', id: `call_${clock.id()}`, name: opens }]
    throw failed()
  }
  // A resumed answer is counted whole, as a provider would.
  const written = tokens.length - (response === undefined ? from : 0) + reasoning + calls.length
  yield [
    ...calls.map(
      (call): ModelDelta => ({ type: 'tool_call', call: { id: `call_${clock.id()}`, ...call } }),
    ),
    { type: 'usage', usage: { inputTokens: input, outputTokens: written } },
    { type: 'finish', reason: calls.length > 0 ? 'tool_calls' : script.cut ? 'length' : 'stop' },
  ]
}

export function scripted({
  settings = {},
  clock,
}: {
  settings?: Settings
  clock: Clock
}): ModelProvider {
  const resumes = settings.resume === '1'
  const models: readonly Model[] = [
    {
      key: 'scripted',
      name: 'Scripted',
      provider: 'scripted',
      isDefault: true,
      description:
        'A test double, no language model: it writes numbered tokens at the pace that it is told.',
      contextTokens: tokensMax,
      outputTokensMax: Math.max(answerTokensMin, number(settings, 'tokens', 20)),
      price: { inputPer1k: 0, outputPer1k: 1, minimum: 1 },
      supports: {
        tools: true,
        reasoning: true,
        prefill: settings.prefill !== '0',
        resume: resumes,
      },
    },
  ]
  const { check, shut } = closable(serviceName)
  const closing = new AbortController()
  const failures = new Map<string, number>()

  /**
   * Whether this call fails. Failures of a message are counted only where their number is limited.
   */
  const fails = (asked: Settings, message: string): boolean => {
    if (
      (asked.fail_after === undefined && asked.open_tool_fail === undefined) ||
      asked.fail_calls === undefined
    )
      return true
    const before = failures.get(message) ?? 0
    failures.delete(message)
    failures.set(message, before + 1)
    if (failures.size > rememberedMax) failures.delete(failures.keys().next().value!)
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
      const script = scriptOf({ ...asked, resume: resumes ? '1' : '0' }, request, () =>
        fails(asked, message),
      )
      const rate = script.calls.length > 0 ? 0 : number(asked, 'fail_rate', 0)
      const failing =
        rate > 0 && clock.random() < rate
          ? { ...script, failAt: Math.floor((script.from + script.tokens.length) / 2) }
          : script
      // Combines two signals, but only for a script that waits.
      const waits = failing.intervalMs > 0 || failing.stallAt !== Infinity
      const signal = waits ? AbortSignal.any([request.signal, closing.signal]) : request.signal
      yield* play(failing, {
        input: inputTokensOf(request),
        signal,
        clock,
        response: resumes ? (request.resume?.response ?? `answer_${clock.id()}`) : undefined,
      })
    },
    async ping() {
      check()
    },
    async close() {
      if (shut()) closing.abort(closedFault(serviceName))
    },
  }
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'scripted',
  options,
  open: async ({ url, clock }) => {
    const settings: Settings = Object.fromEntries(url.searchParams)
    for (const name of [
      'tokens',
      'interval_ms',
      'reasoning',
      'fail_after',
      'fail_calls',
      'fail_rate',
      'stall_after',
    ] as const)
      number(settings, name, 0)
    return scripted({ settings, clock })
  },
})
