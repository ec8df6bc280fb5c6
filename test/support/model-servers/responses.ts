// OpenAI's responses as it documents them, with the checks that its servers make.
import {
  frame,
  openaiRefusal,
  piecesOf,
  usageOf,
  wordsOf,
  type Asked,
  type Turn,
  type Wire,
} from './turn.ts'

type Item = {
  type?: string
  role?: string
  content?: string
  call_id?: string
  name?: string
  arguments?: string
  output?: string
}
type Body = {
  model: string
  input: Item[]
  tools?: { name: string; strict?: boolean }[]
  max_output_tokens: number
  store?: boolean
  background?: boolean
  stream?: boolean
}

function check({
  input,
  tools = [],
  max_output_tokens: most,
  store,
  background,
  stream,
}: Body): string | undefined {
  if (stream !== true) return 'stream: expected true'
  if (most < 16) return 'max_output_tokens: expected a value >= 16'
  if (background === true && store !== true) return 'background: needs store'
  if (tools.some(({ strict }) => strict !== false)) return 'tools: the parameters are not strict'
  const called = new Set<string>()
  const answered = new Set<string>()
  for (const [at, { type, call_id: id = '', name = '', arguments: json = '' }] of input.entries()) {
    if (type === 'function_call') {
      if (id.length > 64 || called.has(id) || !/^[\w-]{1,64}$/.test(name))
        return `input[${at}]: not a valid call`
      JSON.parse(json)
      called.add(id)
    }
    if (type === 'function_call_output') {
      if (!called.has(id)) return `input[${at}]: no tool call found for function call output`
      answered.add(id)
    }
  }
  return called.size === answered.size ? undefined : 'input: no tool output found for function call'
}
const asked = (body: Body): Asked => ({
  model: body.model,
  body: body as unknown as Record<string, unknown>,
  beginning: '',
  said: body.input
    .filter(({ type }) => type !== 'function_call')
    .map(({ role = 'user', content = '', output }) => ({
      role,
      text: content,
      results: output === undefined ? [] : [output],
    })),
  tools: (body.tools ?? []).map(({ name }) => name),
  outputTokensMax: body.max_output_tokens,
})
function frames(turn: Turn, { model }: Asked): string[] {
  const { reasoning = '', text = '', refusal = '', calls = [], finish = 'stop' } = turn
  const usage = usageOf(turn)
  let number = -1
  let index = -1
  const event = (type: string, data: object): string =>
    frame({ type, sequence_number: ++number, ...data }, type)
  const response = (status: string, more: object = {}): object => ({
    response: {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model,
      status,
      output: [],
      error: null,
      incomplete_details: null,
      usage: null,
      ...more,
    },
  })
  const counted = usage
    ? {
        usage: {
          input_tokens: usage.input,
          output_tokens: usage.output,
          total_tokens: usage.input + usage.output,
        },
      }
    : {}
  const part = (kind: 'output_text' | 'refusal', said: string): string[] => {
    if (said === '') return []
    const at = { item_id: `msg_${++index}`, output_index: index, content_index: 0 }
    return [
      event('response.output_item.added', {
        output_index: index,
        item: {
          id: at.item_id,
          type: 'message',
          status: 'in_progress',
          role: 'assistant',
          content: [],
        },
      }),
      event('response.content_part.added', { ...at, part: { type: kind, text: '' } }),
      ...wordsOf(said).map(delta => event(`response.${kind}.delta`, { ...at, delta })),
      event(`response.${kind}.done`, { ...at, text: said }),
      event('response.output_item.done', {
        output_index: index,
        item: {
          id: at.item_id,
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [],
        },
      }),
    ]
  }
  const call = ({ id, name, arguments: json }: NonNullable<Turn['calls']>[number]): string[] => {
    const item = {
      id: `fc_${++index}`,
      type: 'function_call',
      call_id: id ?? `call_${index}`,
      name,
    }
    const at = { item_id: item.id, output_index: index }
    return [
      event('response.output_item.added', {
        output_index: index,
        item: { ...item, status: 'in_progress', arguments: '' },
      }),
      ...piecesOf(json).map(delta =>
        event('response.function_call_arguments.delta', { ...at, delta }),
      ),
      event('response.function_call_arguments.done', { ...at, arguments: json }),
      event('response.output_item.done', {
        output_index: index,
        item: { ...item, status: 'completed', arguments: json },
      }),
    ]
  }
  const thought = (): string[] => {
    const at = { item_id: `rs_${++index}`, output_index: index }
    return reasoning
      .split('\n\n')
      .flatMap((summary, n) => [
        event('response.reasoning_summary_part.added', { ...at, summary_index: n }),
        ...wordsOf(summary).map(delta =>
          event('response.reasoning_summary_text.delta', { ...at, summary_index: n, delta }),
        ),
      ])
  }
  const end = (): string => {
    if (finish === 'error')
      return event(
        'response.failed',
        response('failed', { error: { code: 'server_error', message: 'The model failed.' } }),
      )
    if (finish === 'stop')
      return event(
        'response.completed',
        response('completed', {
          ...counted,
          output: calls.map(({ name, arguments: json }) => ({
            type: 'function_call',
            name,
            arguments: json,
          })),
        }),
      )
    return event(
      'response.incomplete',
      response('incomplete', {
        ...counted,
        incomplete_details: {
          reason: finish === 'length' ? 'max_output_tokens' : 'content_filter',
        },
      }),
    )
  }
  return [
    event('response.created', response('queued')),
    event('response.in_progress', response('in_progress')),
    ...(reasoning === '' ? [] : thought()),
    ...part('output_text', text),
    ...part('refusal', refusal),
    ...calls.flatMap(call),
    end(),
  ]
}
export const responses: Wire = {
  path: '/v1/responses',
  frames,
  check: body => check(body as unknown as Body),
  asked: body => asked(body as unknown as Body),
  refusal: openaiRefusal,
}
