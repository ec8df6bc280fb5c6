// Anthropic's messages as it documents them, with the checks that its servers make.
import { frame, piecesOf, usageOf, wordsOf, type Asked, type Turn, type Wire } from './turn.ts'

type Block = {
  type: string
  text?: string
  id?: string
  name?: string
  input?: unknown
  tool_use_id?: string
  content?: string
}
type Body = {
  model: string
  max_tokens: number
  system?: string
  messages: { role: string; content: string | Block[] }[]
  tools?: { name: string; input_schema: { type?: string } }[]
  thinking?: { type: string; budget_tokens?: number }
  stream?: boolean
}

const blocksOf = (content: string | Block[]): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

function check(
  { messages: turns, tools = [], thinking, max_tokens: most, stream }: Body,
  headers: Readonly<Record<string, unknown>>,
): string | undefined {
  if (stream !== true) return 'stream: expected true'
  if (headers['anthropic-version'] === undefined) return 'anthropic-version: header is required'
  if (!Number.isInteger(most) || most < 1) return 'max_tokens: must be at least 1'
  if (turns[0]?.role !== 'user') return 'messages: the first message must be of the user'
  if (
    thinking?.type === 'enabled' &&
    !(thinking.budget_tokens! >= 1024 && thinking.budget_tokens! < most)
  )
    return 'thinking.budget_tokens: out of range'
  if (tools.some(({ input_schema: schema }) => schema.type !== 'object'))
    return 'tools: input_schema.type must be object'
  const ids = new Set<string>()
  let open: string[] = []
  for (const [at, { role, content }] of turns.entries()) {
    if (role === turns[at - 1]?.role) return `messages.${at}: roles must take turns`
    const blocks = blocksOf(content)
    const results = blocks
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id: id }) => id!)
    if (
      blocks.length === 0 ||
      blocks.some(({ type, text }) => type === 'text' && text!.trim() === '')
    )
      return `messages.${at}: text content blocks must be non-empty`
    if (open.some(id => !results.includes(id)) || results.some(id => !open.includes(id)))
      return `messages.${at}: tool_use ids without tool_result blocks immediately after`
    open = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id!)
    for (const id of open) {
      if (!/^[a-zA-Z0-9_-]+$/.test(id) || ids.has(id))
        return `messages.${at}: tool_use.id is not valid or not unique`
      ids.add(id)
    }
    if (
      blocks.some(
        ({ type, input }) =>
          type === 'tool_use' &&
          (typeof input !== 'object' || input === null || Array.isArray(input)),
      )
    )
      return `messages.${at}: tool_use.input must be an object`
    if (thinking?.type === 'enabled' && at === turns.length - 1 && results.length > 0)
      return 'messages: expected `thinking`, but found `tool_use`'
  }
  if (ids.size > 0 && tools.length === 0)
    return 'tools: requests with tool_use blocks must define tools'
  const last = turns.at(-1)!
  const lastText = blocksOf(last.content).at(-1)!.text
  if (last.role === 'assistant' && lastText !== lastText?.trimEnd())
    return 'messages: final assistant content cannot end with trailing whitespace'
  return undefined
}
function asked(body: Body): Asked {
  const last = body.messages.at(-1)!
  const begun = last.role === 'assistant'
  return {
    model: body.model,
    body: body as unknown as Record<string, unknown>,
    beginning: begun
      ? blocksOf(last.content)
          .map(({ text = '' }) => text)
          .join('')
      : '',
    said: body.messages.slice(0, begun ? -1 : undefined).map(({ role, content }) => ({
      role,
      text: blocksOf(content)
        .map(({ text = '' }) => text)
        .join(''),
      results: blocksOf(content).flatMap(({ type, content: result = '' }) =>
        type === 'tool_result' ? [result] : [],
      ),
    })),
    tools: (body.tools ?? []).map(({ name }) => name),
    outputTokensMax: body.max_tokens,
  }
}
function frames(turn: Turn, { model }: Asked): string[] {
  const { reasoning = '', text = '', refusal = '', calls = [], finish = 'stop' } = turn
  const usage = usageOf(turn)
  const event = (type: string, data: object): string => frame({ type, ...data }, type)
  let index = -1
  const block = (start: object, deltas: readonly object[]): string[] => {
    index++
    return [
      event('content_block_start', { index, content_block: start }),
      ...deltas.map(delta => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]
  }
  const reason = {
    stop: refusal ? 'refusal' : calls.length > 0 ? 'tool_use' : 'end_turn',
    length: 'max_tokens',
    filtered: 'refusal',
    error: 'end_turn',
  }[finish]
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...(usage
          ? {
              usage: {
                input_tokens: usage.input - 2,
                cache_creation_input_tokens: 1,
                cache_read_input_tokens: 1,
                output_tokens: 1,
              },
            }
          : {}),
      },
    }),
    ...(reasoning === ''
      ? []
      : block({ type: 'thinking', thinking: '', signature: '' }, [
          ...wordsOf(reasoning).map(word => ({ type: 'thinking_delta', thinking: word })),
          { type: 'signature_delta', signature: 'c2lnbmF0dXJl' },
        ])),
    event('ping', {}),
    ...(text + refusal === ''
      ? []
      : block(
          { type: 'text', text: '' },
          wordsOf(text + refusal).map(word => ({ type: 'text_delta', text: word })),
        )),
    ...calls.flatMap(({ id, name, arguments: json }, n) =>
      block(
        { type: 'tool_use', id: id ?? `toolu_${n}`, name, input: {} },
        ['', ...piecesOf(json)].map(partial => ({
          type: 'input_json_delta',
          partial_json: partial,
        })),
      ),
    ),
    event('message_delta', {
      delta: { stop_reason: reason, stop_sequence: null },
      ...(usage ? { usage: { output_tokens: usage.output } } : {}),
    }),
    event('message_stop', {}),
  ]
}
export const messages: Wire = {
  path: '/v1/messages',
  frames,
  check: (body, headers) => check(body as unknown as Body, headers),
  asked: body => asked(body as unknown as Body),
  refusal: ({ type, message }) => JSON.stringify({ type: 'error', error: { type, message } }),
}
