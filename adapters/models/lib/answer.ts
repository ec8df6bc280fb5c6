// An answer as it grows: what every wire's reader writes into, and what is handed out of it.
import { fault } from '#contracts/faults.ts'
import type { Checkpoint, ModelDelta, Usage } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'
import { tokensOf } from './model-calls.ts'

type Finish = Extract<ModelDelta, { type: 'finish' }>['reason']
type Call = { readonly id: string; readonly name: string; arguments: string }
export type Answer = ReturnType<typeof createAnswer>

/**
 * Arguments that are not valid JSON are handed on as they came, for whoever checks them to say so.
 */
function argumentsIn(text: string): Json {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

/** `inputTokens`: the estimate that stands where the provider does not count. */
export function createAnswer({
  who,
  inputTokens,
  newId,
}: {
  who: string
  inputTokens: number
  newId: () => string
}) {
  let ready: ModelDelta[] = []
  let characters = 0
  let calls = 0
  let finished: Finish | undefined
  let counted: Partial<Record<keyof Usage, number>> = {}
  const open = new Map<string | number, Call>()
  const ids = new Set<string>()

  return {
    text(text: unknown): void {
      if (typeof text !== 'string' || text === '') return
      characters += text.length
      ready.push({ type: 'text', text })
    },
    reasoning(text: unknown): void {
      if (typeof text !== 'string' || text === '') return
      characters += text.length
      ready.push({ type: 'reasoning', text })
    },
    isOpen: (at: string | number): boolean => open.has(at),
    anyOpen: (): boolean => open.size > 0,
    /**
     * `at` is where the wire counts the call. An id is the provider's where it has one that this
     * answer did not use yet.
     */
    openCall(at: string | number, { id, name }: { id: unknown; name: unknown }): void {
      const own = typeof id === 'string' && id !== '' && !ids.has(id) ? id : `call_${newId()}`
      const call: Call = { id: own, name: typeof name === 'string' ? name : '', arguments: '' }
      ids.add(own)
      open.set(at, call)
      ready.push({ type: 'tool_open', id: call.id, name: call.name })
    },
    addArguments(at: string | number, text: unknown): void {
      const call = open.get(at)
      if (call !== undefined && typeof text === 'string') call.arguments += text
    },
    /** The call is whole; `whole`: its arguments, where the wire says them once more. */
    closeCall(at: string | number, whole?: string): void {
      const call = open.get(at)
      if (call === undefined) return
      open.delete(at)
      const text = whole ?? call.arguments
      characters += text.length
      calls++
      ready.push({
        type: 'tool_call',
        call: { id: call.id, name: call.name, arguments: argumentsIn(text) },
      })
    },
    closeCalls(): void {
      for (const at of [...open.keys()]) this.closeCall(at)
    },
    /** Calls that the whole answer holds, where a part of it was received before. */
    holdsCalls(count: number): void {
      calls = Math.max(calls, count)
    },
    /** Later counts replace earlier ones; what is no whole number is not believed. */
    count({
      inputTokens: input,
      outputTokens: output,
    }: {
      inputTokens?: unknown
      outputTokens?: unknown
    }): void {
      counted = {
        ...counted,
        ...(isCount(input) ? { inputTokens: input } : {}),
        ...(isCount(output) ? { outputTokens: output } : {}),
      }
    },
    checkpoint(checkpoint: Checkpoint): void {
      ready.push({ type: 'checkpoint', checkpoint })
    },
    /** A call that the provider's filter cut is not whole. */
    finish(reason: Finish): void {
      if (reason === 'filtered') open.clear()
      else this.closeCalls()
      finished = reason
    },
    hasFinished: (): boolean => finished !== undefined,
    take(): ModelDelta[] {
      const taken = ready
      ready = []
      return taken
    },
    /** The last deltas. MODEL_FAILED when the provider stopped without having finished. */
    end(): ModelDelta[] {
      if (finished === undefined)
        throw fault('MODEL_FAILED', { why: `${who} ended its answer in the middle` })
      const reason =
        finished === 'stop' && calls > 0
          ? 'tool_calls'
          : finished === 'tool_calls' && calls === 0
            ? 'stop'
            : finished
      return [
        ...this.take(),
        { type: 'usage', usage: { inputTokens, outputTokens: tokensOf(characters), ...counted } },
        { type: 'finish', reason },
      ]
    },
  }
}
