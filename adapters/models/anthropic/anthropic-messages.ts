// The wire of Anthropic's messages:
// https://platform.claude.com/docs/en/build-with-claude/streaming.
import type Anthropic from '@anthropic-ai/sdk'
import type { Stream } from '@anthropic-ai/sdk/core/streaming'
import type { ModelRequest } from '#ports/models.ts'
import type { Answer } from '../lib/answer.ts'
import {
  goesOnAfterTools,
  outputTokensOf,
  wireMessages,
  type WireMessage,
} from '../lib/messages.ts'
import type { Call, Dialect } from '../lib/provider.ts'

type Params = Anthropic.MessageCreateParamsStreaming
type Block = Anthropic.ContentBlockParam

function blocksOf(message: WireMessage): Block[] {
  // The API refuses empty and blank texts.
  const text: Block[] =
    message.content.trim() === '' ? [] : [{ type: 'text', text: message.content }]
  switch (message.role) {
    case 'system':
      return []
    case 'user':
      return text
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: message.callId,
          ...(text.length === 0 ? {} : { content: message.content }),
        },
      ]
    case 'assistant':
      return [
        ...text,
        ...message.calls.map(
          (call): Block => ({
            type: 'tool_use',
            id: call.id,
            name: call.name,
            input: call.arguments,
          }),
        ),
      ]
  }
}

/**
 * The API requires roles to alternate. So the results of one answer's calls, and the user's next
 * text, become one message.
 */
function turnsOf(messages: readonly WireMessage[]): Anthropic.MessageParam[] {
  const turns: { role: 'user' | 'assistant'; content: Block[] }[] = []
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const blocks = blocksOf(message)
    const last = turns.at(-1)
    if (blocks.length === 0) continue
    if (last?.role === role) last.content.push(...blocks)
    else turns.push({ role, content: blocks })
  }
  return turns
}

const schemaOf = (parameters: unknown): Anthropic.Tool.InputSchema => ({
  ...(parameters as object),
  type: 'object',
})

/** The API requires tools for a conversation with calls, even if the model may not call them. */
function toolsOf(
  { tools = [] }: ModelRequest,
  messages: readonly WireMessage[],
  offered: boolean,
): Pick<Params, 'tools' | 'tool_choice'> {
  if (offered && tools.length > 0)
    return {
      tools: tools.map(({ name, description, parameters }) => ({
        name,
        description,
        input_schema: schemaOf(parameters),
      })),
    }
  const called = new Set(
    messages.flatMap(message =>
      message.role === 'assistant' ? message.calls.map(({ name }) => name) : [],
    ),
  )
  if (called.size === 0) return {}
  return {
    tools: [...called].map(name => ({ name, input_schema: schemaOf({}) })),
    tool_choice: { type: 'none' },
  }
}

/**
 * The port cannot send signed thinking back. With adaptive thinking the API does not require it.
 * With a budget, the rest of a turn goes without thinking:
 * https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
 */
function thinkingOf(
  request: ModelRequest,
  { supports, wire }: Call['model'],
  most: number,
): Pick<Params, 'thinking'> {
  if (!supports.reasoning || request.reasoning !== true || request.prefill !== undefined) return {}
  const { thinkingTokens } = wire
  if (thinkingTokens === undefined) return { thinking: { type: 'adaptive', display: 'summarized' } }
  return goesOnAfterTools(request.messages) || thinkingTokens >= most
    ? {}
    : { thinking: { type: 'enabled', budget_tokens: thinkingTokens } }
}

/** The prefill, without blanks at its end: the API refuses them. */
const beginningOf = ({ request, model }: Pick<Call, 'request' | 'model'>): string =>
  model.supports.prefill ? (request.prefill ?? '').trimEnd() : ''

function paramsOf({ request, model }: Pick<Call, 'request' | 'model'>): Params {
  const messages = wireMessages(request)
  const most = outputTokensOf(request, model.outputTokensMax)
  const beginning = beginningOf({ request, model })
  const system = messages
    .flatMap(({ role, content }) => (role === 'system' && content.trim() !== '' ? [content] : []))
    .join('\n\n')
  return {
    model: model.wire.id,
    max_tokens: most,
    stream: true,
    messages: [
      ...turnsOf(messages),
      ...(beginning === '' ? [] : [{ role: 'assistant' as const, content: beginning }]),
    ],
    ...(system === '' ? {} : { system }),
    ...toolsOf(request, messages, model.supports.tools),
    ...thinkingOf(request, model, most),
  }
}

/** Drops from the start of a continuation the blanks that were cut from the end before it. */
function createSeam(blanks: string): (text: string) => string {
  let left = blanks
  return text => {
    let at = 0
    while (at < text.length && left !== '' && text[at] === left[0]) {
      left = left.slice(1)
      at++
    }
    if (at < text.length) left = ''
    return text.slice(at)
  }
}

const finishes: Readonly<Record<string, Parameters<Answer['finish']>[0]>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'filtered',
}

/** An event as it is read: `type` decides what else there is. */
type Event = {
  readonly type?: string
  readonly index?: number
  readonly message?: { readonly usage?: Tokens }
  readonly content_block?: {
    readonly type?: string
    readonly id?: string
    readonly name?: string
    readonly text?: string
    readonly thinking?: string
  }
  readonly delta?: {
    readonly type?: string
    readonly text?: string
    readonly thinking?: string
    readonly partial_json?: string
    readonly stop_reason?: string | null
  }
  readonly usage?: Tokens
}
type Tokens = {
  readonly input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly output_tokens?: number | null
}

/** Reads one stream's events into its answer. */
function reader(answer: Answer, seam: (text: string) => string): (event: Event) => void {
  const count = ({
    input_tokens: input,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  }: Tokens = {}): void =>
    answer.count({
      inputTokens: typeof input === 'number' ? input + (written ?? 0) + (read ?? 0) : undefined,
      outputTokens: output,
    })
  return ({ type, index = 0, message, content_block: block, delta, usage }) => {
    switch (type) {
      // The output count of this event is provisional; `message_delta` brings the final one.
      case 'message_start':
        return count({ ...message?.usage, output_tokens: null })
      case 'content_block_start':
        if (block?.type === 'tool_use') answer.openCall(index, { id: block.id, name: block.name })
        else if (block?.type === 'text') answer.text(seam(block.text ?? ''))
        else answer.reasoning(block?.thinking)
        return
      case 'content_block_delta':
        if (delta?.type === 'text_delta') answer.text(seam(delta.text ?? ''))
        else if (delta?.type === 'thinking_delta') answer.reasoning(delta.thinking)
        else if (delta?.type === 'input_json_delta') answer.addArguments(index, delta.partial_json)
        return
      case 'content_block_stop':
        return answer.closeCall(index)
      case 'message_delta':
        count(usage)
        if (delta?.stop_reason) answer.finish(finishes[delta.stop_reason] ?? 'stop')
    }
  }
}

export const anthropicMessages = (client: Anthropic): Dialect => ({
  async send({ request, model, fetch, signal, answer }) {
    const beginning = beginningOf({ request, model })
    const blanks = model.supports.prefill ? (request.prefill ?? '').slice(beginning.length) : ''
    // Not `messages.create`: it writes to the console when a model is about to be retired.
    const events = await client.withOptions({ fetch }).post<Stream<unknown>>('/v1/messages', {
      body: paramsOf({ request, model }),
      stream: true,
      signal,
    })
    return { events, read: reader(answer, createSeam(blanks)) as (event: unknown) => void }
  },
  ask: ({ fetch, signal }) => client.withOptions({ fetch }).models.list({ limit: 1 }, { signal }),
})
