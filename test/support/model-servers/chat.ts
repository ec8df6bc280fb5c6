// Chat completions as OpenAI documents them, with the checks that its servers make.
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

type Body = {
  model: string
  messages: Message[]
  tools?: { function: { name: string } }[]
  max_tokens?: number
  max_completion_tokens?: number
  stream?: boolean
}
type Message = {
  role: string
  content: string | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

function check({
  messages,
  stream,
  max_tokens: old,
  max_completion_tokens: most,
}: Body): string | undefined {
  if (stream !== true) return 'stream: expected true'
  if ((old === undefined) === (most === undefined))
    return 'max_tokens: exactly one of the two names is expected'
  let open: string[] = []
  for (const [at, { role, content, tool_calls: calls, tool_call_id: id }] of messages.entries()) {
    if (role === 'tool') {
      if (!open.includes(id ?? ''))
        return `messages[${at}]: a tool message must follow the call that it answers`
      open = open.filter(one => one !== id)
      continue
    }
    if (open.length > 0) return `messages[${at}]: the calls ${open.join()} have no answer`
    if (typeof content !== 'string') return `messages[${at}].content: expected a string`
    for (const call of calls ?? []) {
      if (call.id.length > 40) return `messages[${at}].tool_calls: the id is too long`
      if (!/^[\w-]{1,64}$/.test(call.function.name))
        return `messages[${at}].tool_calls: the name is not valid`
      JSON.parse(call.function.arguments)
      open.push(call.id)
    }
  }
  return undefined
}
function asked(body: Body): Asked {
  const last = body.messages.at(-1)!
  const begun = last.role === 'assistant' && last.tool_calls === undefined
  return {
    model: body.model,
    body: body as unknown as Record<string, unknown>,
    beginning: begun ? last.content! : '',
    said: body.messages.slice(0, begun ? -1 : undefined).map(({ role, content }) => ({
      role: role === 'tool' ? 'user' : role,
      text: role === 'tool' ? '' : (content ?? ''),
      results: role === 'tool' ? [content ?? ''] : [],
    })),
    tools: (body.tools ?? []).map(({ function: { name } }) => name),
    outputTokensMax: body.max_tokens ?? body.max_completion_tokens ?? Number.POSITIVE_INFINITY,
  }
}
function frames(turn: Turn, { model }: Asked): string[] {
  const chunk = (delta: unknown, finishReason: string | null = null): string =>
    frame({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason: finishReason }],
    })
  const { reasoning = '', text = '', refusal = '', calls = [], finish = 'stop' } = turn
  const usage = usageOf(turn)
  const reason = {
    stop: calls.length > 0 ? 'tool_calls' : 'stop',
    length: 'length',
    filtered: 'content_filter',
    error: 'error',
  }[finish]
  // All calls grow side by side, each at its index.
  const parts = calls.map(({ arguments: json }) => piecesOf(json))
  const rounds = Math.max(0, ...parts.map(({ length }) => length))
  return [
    chunk({ role: 'assistant', content: '' }),
    ...wordsOf(reasoning).map(word => chunk({ reasoning_content: word })),
    ...wordsOf(text).map(word => chunk({ content: word })),
    ...wordsOf(refusal).map(word => chunk({ refusal: word })),
    ...calls.map(({ id, name }, index) =>
      chunk({
        tool_calls: [
          { index, id: id ?? `call_${index}`, type: 'function', function: { name, arguments: '' } },
        ],
      }),
    ),
    ...Array.from({ length: rounds }, (_, round) =>
      parts.flatMap((pieces, index) =>
        pieces[round] === undefined
          ? []
          : [chunk({ tool_calls: [{ index, function: { arguments: pieces[round] } }] })],
      ),
    ).flat(),
    chunk({}, reason),
    ...(usage
      ? [
          frame({
            id: 'chatcmpl-1',
            object: 'chat.completion.chunk',
            created: 1,
            model,
            choices: [],
            usage: {
              prompt_tokens: usage.input,
              completion_tokens: usage.output,
              total_tokens: usage.input + usage.output,
            },
          }),
        ]
      : []),
    frame('[DONE]'),
  ]
}
export const chat: Wire = {
  path: '/v1/chat/completions',
  frames,
  check: body => check(body as unknown as Body),
  asked: body => asked(body as unknown as Body),
  refusal: openaiRefusal,
}
