// The wire of responses: https://platform.openai.com/docs/api-reference/responses-streaming;
// answers that outlive their connection: https://platform.openai.com/docs/guides/background.
import type OpenAI from 'openai'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Answer } from '../lib/answer.ts'
import { outputTokensOf, wireMessages, type WireMessage } from '../lib/messages.ts'
import type { Call, Dialect } from '../lib/provider.ts'
import { openWire } from '../lib/wire.ts'

type Params = OpenAI.Responses.ResponseCreateParamsStreaming
/** The API refuses less than this. */
const outputTokensMin = 16
/**
 * Milliseconds between two checkpoints. Each one is a record in a run's journal. A resume repeats
 * the text since the last one.
 */
const checkpointMs = 250
const cancelMs = 5000
/**
 * The abort reason with which the engine cancels a run. After every other reason a resume may
 * follow.
 */
const cancelledReason = 'cancelled'

function itemsOf(message: WireMessage): OpenAI.Responses.ResponseInputItem[] {
  switch (message.role) {
    case 'system':
    case 'user':
      return [{ role: message.role, content: message.content }]
    case 'tool':
      return [{ type: 'function_call_output', call_id: message.callId, output: message.content }]
    case 'assistant':
      return [
        ...(message.content === ''
          ? []
          : [{ role: 'assistant' as const, content: message.content }]),
        ...message.calls.map(call => ({
          type: 'function_call' as const,
          call_id: call.id,
          name: call.name,
          arguments: JSON.stringify(call.arguments),
        })),
      ]
  }
}

function paramsOf({ request, model }: Pick<Call, 'request' | 'model'>): Params {
  const { tools = [] } = request
  const { supports, wire, outputTokensMax } = model
  return {
    model: wire.id,
    stream: true,
    input: wireMessages(request).flatMap(itemsOf),
    max_output_tokens: Math.max(outputTokensMin, outputTokensOf(request, outputTokensMax)),
    // The provider keeps the answer only where it may be resumed.
    store: supports.resume,
    ...(supports.resume ? { background: true } : {}),
    ...(supports.tools && tools.length > 0
      ? {
          tools: tools.map(({ name, description, parameters }) => ({
            type: 'function',
            name,
            description,
            parameters: parameters as Record<string, unknown>,
            strict: false,
          })),
        }
      : {}),
    ...(supports.reasoning && request.reasoning === true
      ? { reasoning: { effort: wire.effort, summary: 'auto' } }
      : {}),
  }
}

/** An event as servers really send it: `type` decides what else there is. */
type Event = {
  readonly type?: string
  readonly sequence_number?: number
  readonly delta?: unknown
  readonly output_index?: number
  readonly summary_index?: number
  readonly item?: {
    readonly type?: string
    readonly call_id?: string
    readonly name?: string
    readonly arguments?: string
  }
  readonly response?: {
    readonly id?: string
    readonly output?: readonly NonNullable<Event['item']>[]
    readonly usage?: { readonly input_tokens?: unknown; readonly output_tokens?: unknown } | null
    readonly incomplete_details?: { readonly reason?: string } | null
    readonly error?: unknown
  }
}
type Keeping = {
  /** Undefined where the answer cannot be resumed. */ readonly clock: Clock | undefined
  /** Called with the provider's id of the answer, as soon as it is known. */
  readonly onId: (id: string) => void
  readonly resumed: Call['request']['resume']
}

/** Reads one stream's events into its answer. */
function reader(answer: Answer, { clock, onId, resumed }: Keeping): (event: Event) => void {
  let id = resumed?.response
  let refused = false
  let keptAt = Number.NEGATIVE_INFINITY
  const isCall = (item: Event['item']) => item?.type === 'function_call'
  const keep = (at: unknown): void => {
    // No checkpoint within a tool call: the journal does not hold the call's first half.
    if (
      clock === undefined ||
      id === undefined ||
      typeof at !== 'number' ||
      answer.anyOpen() ||
      answer.hasFinished()
    )
      return
    if (clock.monotonic() - keptAt < checkpointMs) return
    keptAt = clock.monotonic()
    answer.checkpoint({ response: id, at })
  }
  const finish = ({
    usage,
    output = [],
    incomplete_details: incomplete,
  }: NonNullable<Event['response']>): void => {
    answer.holdsCalls(output.filter(isCall).length)
    if (usage) answer.count({ inputTokens: usage.input_tokens, outputTokens: usage.output_tokens })
    answer.finish(
      incomplete?.reason === 'content_filter' || refused
        ? 'filtered'
        : incomplete
          ? 'length'
          : 'stop',
    )
  }
  const readers: Readonly<Record<string, (event: Event, at: number) => void>> = {
    'response.created': ({ response }) => {
      id = response?.id
      if (id !== undefined) onId(id)
    },
    'response.output_text.delta': ({ delta }) => answer.text(delta),
    'response.refusal.delta': ({ delta }) => {
      refused = true
      answer.text(delta)
    },
    'response.reasoning_text.delta': ({ delta }) => answer.reasoning(delta),
    'response.reasoning_summary_text.delta': ({ delta }) => answer.reasoning(delta),
    'response.reasoning_summary_part.added': ({ summary_index: index = 0 }) => {
      if (index > 0) answer.reasoning('\n\n')
    },
    'response.output_item.added': ({ item }, at) => {
      if (isCall(item)) answer.openCall(at, { id: item!.call_id, name: item!.name })
    },
    'response.function_call_arguments.delta': ({ delta }, at) => answer.addArguments(at, delta),
    'response.output_item.done': ({ item }, at) => {
      if (!isCall(item)) return
      // A resumed stream may begin after the call's own beginning.
      if (!answer.isOpen(at)) answer.openCall(at, { id: item!.call_id, name: item!.name })
      answer.closeCall(at, item!.arguments)
    },
    'response.completed': ({ response = {} }) => finish(response),
    'response.incomplete': ({ response = {} }) => finish({ incomplete_details: {}, ...response }),
    'response.failed': ({ response }) => {
      throw Object.assign(new Error('The response failed.'), { error: response?.error ?? {} })
    },
    'response.cancelled': () => {
      throw fault('MODEL_FAILED', { why: 'the answer was cancelled there' })
    },
  }
  return event => {
    readers[event.type ?? '']?.(event, event.output_index ?? 0)
    keep(event.sequence_number)
  }
}

export function openaiResponses(
  client: OpenAI,
  { who, clock }: { who: string; clock: Clock },
): Dialect {
  /** Cancels an answer that would go on without a reader. */
  const cancel = async (id: string): Promise<void> => {
    const enough = new AbortController()
    const { fetch } = openWire({ who, clock, signal: enough.signal, timeoutMs: cancelMs })
    await client
      .withOptions({ fetch })
      .responses.cancel(id, {})
      .finally(() => enough.abort())
  }
  return {
    async send({ request, model, fetch, signal, answer }) {
      const asking = client.withOptions({ fetch }).responses
      const { resume } = request
      const keeps = model.supports.resume
      let id = keeps ? resume?.response : undefined
      if (keeps) {
        request.signal.addEventListener(
          'abort',
          () => {
            if (
              id !== undefined &&
              request.signal.reason === cancelledReason &&
              !answer.hasFinished()
            )
              cancel(id).catch(() => 'it ends by itself')
          },
          { once: true },
        )
      }
      const events =
        keeps && resume !== undefined
          ? await asking.retrieve(
              resume.response,
              { stream: true, starting_after: resume.at },
              { signal },
            )
          : await asking.create(paramsOf({ request, model }), { signal })
      const read = reader(answer, {
        clock: keeps ? clock : undefined,
        resumed: keeps ? resume : undefined,
        onId: given => {
          id = given
        },
      })
      return { events, read: read as (event: unknown) => void }
    },
    ask: ({ fetch, signal }) => client.withOptions({ fetch }).models.list({ signal }),
  }
}
