// The wire of chat completions: https://platform.openai.com/docs/api-reference/chat-streaming, and
// what vLLM, Ollama, llama.cpp and DeepSeek add to it.
import type OpenAI from 'openai'
import { fault } from '#contracts/faults.ts'
import type { Answer } from '../lib/answer.ts'
import { outputTokensOf, wireMessages, type WireMessage } from '../lib/messages.ts'
import type { Call, Dialect } from '../lib/provider.ts'

type Params = OpenAI.Chat.ChatCompletionCreateParamsStreaming
/** Fields that only some servers know. Each server gets those of its own kind. */
type Extra = { add_generation_prompt?: false; continue_final_message?: true }
type Message = OpenAI.Chat.ChatCompletionMessageParam & { prefix?: true }

function messageOf(message: WireMessage): Message {
  switch (message.role) {
    case 'system':
    case 'user':
      return message
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.content }
    case 'assistant':
      return {
        role: 'assistant',
        content: message.content,
        ...(message.calls.length === 0
          ? {}
          : {
              tool_calls: message.calls.map(call => ({
                id: call.id,
                type: 'function',
                function: { name: call.name, arguments: JSON.stringify(call.arguments) },
              })),
            }),
      }
  }
}

function paramsOf(
  { request, model }: Pick<Call, 'request' | 'model'>,
  atVendor: boolean,
): Params & Extra {
  const { prefill, tools = [] } = request
  const { supports, wire, outputTokensMax } = model
  const messages = wireMessages(request).map(messageOf)
  const most = outputTokensOf(request, outputTokensMax)
  const begun = supports.prefill && prefill !== undefined && prefill !== ''
  if (begun)
    messages.push({
      role: 'assistant',
      content: prefill,
      ...(wire.prefillAs === 'prefix' ? { prefix: true } : {}),
    })
  return {
    model: wire.id,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    // OpenAI's reasoning models refuse the old name. Most other servers know only the old one.
    ...(atVendor ? { max_completion_tokens: most } : { max_tokens: most }),
    ...(supports.tools && tools.length > 0
      ? {
          tools: tools.map(({ name, description, parameters }) => ({
            type: 'function',
            function: { name, description, parameters: parameters as OpenAI.FunctionParameters },
          })),
        }
      : {}),
    ...(supports.reasoning && request.reasoning === true ? { reasoning_effort: wire.effort } : {}),
    ...(begun && wire.prefillAs === 'vllm'
      ? { add_generation_prompt: false, continue_final_message: true }
      : {}),
  }
}

/** A choice as servers really send it. */
type Choice = {
  readonly delta?: {
    readonly content?: unknown
    readonly refusal?: unknown
    readonly reasoning_content?: unknown
    readonly reasoning?: unknown
    readonly tool_calls?: readonly ToolPart[] | null
  } | null
  readonly finish_reason?: string | null
}
type ToolPart = {
  readonly index?: number
  readonly id?: string | null
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null } | null
}
type Chunk = {
  readonly choices?: readonly Choice[]
  readonly usage?: { readonly prompt_tokens?: unknown; readonly completion_tokens?: unknown } | null
}

function finishOf(reason: string, refused: boolean): Parameters<Answer['finish']>[0] {
  switch (reason) {
    case 'length':
      return 'length'
    case 'content_filter':
      return 'filtered'
    case 'tool_calls':
    case 'function_call':
      return 'tool_calls'
    // vLLM and DeepSeek: the server aborted the answer.
    case 'abort':
    case 'error':
    case 'insufficient_system_resource':
      throw fault('MODEL_FAILED', { why: `the answer was given up there (${reason})` })
    default:
      return refused ? 'filtered' : 'stop'
  }
}

/** Reads one stream's chunks into its answer. */
function reader(answer: Answer): (chunk: Chunk) => void {
  let refused = false
  let count = 0
  const places = new Map<number | undefined, { readonly at: number; readonly id: string }>()
  /**
   * Returns the call that a part belongs to. Several calls may grow at once, each with its index.
   * Some servers send 0 or nothing for every call: there a new name begins a new call.
   */
  const placeOf = ({ index, id, function: named }: ToolPart): number => {
    const known = places.get(index)
    const another = Boolean(named?.name) && (id ? id !== known?.id : index === undefined)
    if (known !== undefined && !another) return known.at
    const at = count++
    places.set(index, { at, id: id ?? '' })
    answer.openCall(at, { id, name: named?.name })
    return at
  }
  return ({ choices = [], usage }) => {
    // Usage comes in a chunk of its own at the end; some servers send one with every chunk.
    if (usage)
      answer.count({ inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens })
    const [choice] = choices
    if (choice === undefined) return
    const { delta, finish_reason: reason } = choice
    answer.reasoning(delta?.reasoning_content ?? delta?.reasoning)
    answer.text(delta?.content)
    if (typeof delta?.refusal === 'string' && delta.refusal !== '') {
      refused = true
      answer.text(delta.refusal)
    }
    for (const part of delta?.tool_calls ?? [])
      answer.addArguments(placeOf(part), part.function?.arguments)
    if (reason) answer.finish(finishOf(reason, refused))
  }
}

export const openaiChat = (client: OpenAI, { atVendor }: { atVendor: boolean }): Dialect => ({
  async send({ request, model, fetch, signal, answer }) {
    const events = await client
      .withOptions({ fetch })
      .chat.completions.create(paramsOf({ request, model }, atVendor), { signal })
    return { events, read: reader(answer) as (event: unknown) => void }
  },
  ask: ({ fetch, signal }) => client.withOptions({ fetch }).models.list({ signal }),
})
