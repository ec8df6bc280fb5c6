// An answer as it grows. The reader of each wire writes into it, and `take` returns the deltas.
import { fault } from '#contracts/faults.ts'
import type { Checkpoint, ModelDelta, Usage } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'
import { tokensOf } from './model-calls.ts'

type Finish = Extract<ModelDelta, { type: 'finish' }>['reason']
type Call = { readonly id: string; readonly name: string; arguments: string }
export type Answer = ReturnType<typeof createAnswer>

/**
 * Arguments that are not valid JSON are passed on as text, so that the check of arguments reports
 * them.
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

/** `inputTokens`: the estimate for a provider that does not count. */
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
     * `at` identifies the call on the wire. The provider's id is used where it has one that is new
     * in this answer.
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
    /** The call is complete. `whole`: its arguments, where the wire repeats them. */
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
    /** How many calls the whole answer has. A resumed stream may show only some of them. */
    holdsCalls(count: number): void {
      calls = Math.max(calls, count)
    },
    /** Later counts replace earlier ones. Values that are no whole numbers are ignored. */
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
    /** Ends the answer. A call that the provider's filter cut is incomplete, and dropped. */
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
