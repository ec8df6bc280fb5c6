// The script of the scripted model: parameters of its URL, directives in a message, and the answer
// that follows from both.
import { fault } from '#contracts/faults.ts'
import type { ModelRequest } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'
import { toolResultsSince } from '../lib/model-calls.ts'

export const tokensMax = 1_000_000

/**
 * Parameters of the URL, and directives `[[name=value]]` in the user's message, which override them
 * for that call.
 */
export const options = {
  tokens: 'How many tokens it writes; default 20.',
  interval_ms: 'Pause before each token; 0 sends them in two batches; default 0.',
  text: 'Writes this text, a word a token, instead of token00 token01 ….',
  reasoning:
    'Tokens of reasoning before the answer; default 3 when the request asks for reasoning, else 0.',
  tool:
    'Calls this tool first: `name` or `name {"json":1}`; writes its tokens once the tool has ' +
    'answered.',
  tools:
    'Calls these tools one after another, each once the former has answered: ' +
    '`[["name",{"json":1}],["other",{}]]`; writes its tokens after the last.',
  parallel_tools: 'Calls these tools in one answer; written like `tools`.',
  tool_text: "Writes this text before each answer's tool calls.",
  open_tool_fail:
    '1: after its text it opens a tool call and fails with MODEL_FAILED before that is whole.',
  fail_after:
    'Fails with MODEL_FAILED when this many tokens of the answer stand, unless the call ' +
    'began with as many (prefill, resume).',
  fail_calls: 'Only the first so many calls with the same user message fail; default all.',
  fail_rate: 'The share of calls, 0 to 1, that fail half way; default 0.',
  stall_after:
    'Says nothing more when this many tokens stand, until it is aborted; the same ' +
    'exception as fail_after.',
  prefill: '0: the catalogue does not offer prefill; default 1.',
  resume: '1: the catalogue offers resume, and each batch ends with a checkpoint; default 0.',
}
export type Name = keyof typeof options
export type Settings = Partial<Record<Name, string>>
export type Calling = { readonly name: string; readonly arguments: Json }
/**
 * `tokens[from]` is the next token. `opens`: the name of a tool call that begins and is never
 * completed.
 */
export type Script = {
  readonly tokens: readonly string[]
  readonly from: number
  readonly reasoning: number
  readonly intervalMs: number
  readonly failAt: number
  readonly stallAt: number
  readonly cut: boolean
  readonly calls: readonly Calling[]
  readonly opens: string | undefined
}

/**
 * Global expressions keep their position, so each message gets new ones. A JSON value may contain
 * `]]`; the end of a directive is not followed by more JSON.
 */
const openings = () => /\[\[([a-z_]+)=/g
const ends = () => /\]\](?![\]},"])/g

export function directivesIn(message: string): Settings {
  const opening = openings()
  const end = ends()
  const found: [string, string][] = []
  for (let begun = opening.exec(message); begun; begun = opening.exec(message)) {
    const from = (end.lastIndex = opening.lastIndex)
    const ended = end.exec(message)
    // If this directive has no end, no later one has.
    if (!ended) break
    if (Object.hasOwn(options, begun[1]!)) found.push([begun[1]!, message.slice(from, ended.index)])
    opening.lastIndex = end.lastIndex
  }
  return Object.fromEntries(found)
}
export function number(settings: Settings, name: Name, otherwise: number): number {
  const text = settings[name]
  if (text === undefined) return otherwise
  const value = text.trim() === '' ? NaN : Number(text)
  if (!(value >= 0 && value <= tokensMax))
    throw fault('INVALID_FIELD', { field: name, why: `must be a number from 0 to ${tokensMax}` })
  return value
}
const wordsOf = (text: string): string[] => text.match(/\S+\s*/g) ?? []

function jsonIn(text: string, name: Name): Json {
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    throw fault('INVALID_FIELD', { field: name, why: 'is not valid JSON' }, { cause })
  }
}
function listed(settings: Settings, name: 'tools' | 'parallel_tools'): Calling[] {
  const text = settings[name]
  if (text === undefined) return []
  const list = jsonIn(text, name)
  if (!Array.isArray(list) || list.some(one => !Array.isArray(one) || typeof one[0] !== 'string'))
    throw fault('INVALID_FIELD', { field: name, why: 'must be a list of [name, arguments]' })
  return (list as [string, Json?][]).map(([called, args = {}]) => ({
    name: called,
    arguments: args,
  }))
}

/** The tool calls of this answer; none after all calls were answered. */
function callsOf(settings: Settings, request: ModelRequest): readonly Calling[] {
  const answered = toolResultsSince(request.messages).length
  const text = (settings.tool ?? '').trim()
  const [name = ''] = text.split(/\s/, 1)
  const json = text.slice(name.length).trim()
  const inTurn = [
    ...(name === '' ? [] : [{ name, arguments: json ? jsonIn(json, 'tool') : {} }]),
    ...listed(settings, 'tools'),
  ]
  const together = listed(settings, 'parallel_tools')
  if (answered < inTurn.length) return [inTurn[answered]!]
  return answered === inTurn.length ? together : []
}

/** How many of the words the prefill holds. 0 where the prefill is not their beginning. */
function standing(words: readonly string[], prefill: string): number {
  let count = 0
  let text = ''
  while (count < words.length && prefill.length > text.length) text += words[count++]
  return text === prefill ? count : 0
}

/** `isOneThatFails` is called at most once, and only for a call that could fail. */
export function scriptOf(
  settings: Settings,
  request: ModelRequest,
  isOneThatFails: () => boolean,
): Script {
  const calls = callsOf(settings, request)
  const calling = calls.length > 0
  const opensOne = settings.open_tool_fail === '1'
  const fails = (opensOne || !calling) && isOneThatFails()
  const words = calling
    ? wordsOf(settings.tool_text ?? '')
    : settings.text !== undefined
      ? wordsOf(settings.text)
      : Array.from(
          { length: number(settings, 'tokens', 20) },
          (_, n) => `token${n < 10 ? '0' : ''}${n} `,
        )
  const resumed = settings.resume === '1' ? request.resume?.at : undefined
  const from =
    resumed !== undefined
      ? Math.min(resumed, words.length)
      : request.prefill === undefined
        ? 0
        : standing(words, request.prefill)
  // The token at which a failure or a stall happens; Infinity for an answer that begins at or
  // behind it. At 0 only a resumed answer is behind. An answer with tool calls does not fail here.
  const spot = (name: Name): number => {
    const at = calling ? Infinity : number(settings, name, Infinity)
    return (at === 0 && resumed === undefined) || from < at ? at : Infinity
  }
  const most = from + (request.outputTokensMax ?? Infinity)
  return {
    tokens: words.length > most ? words.slice(0, most) : words,
    from,
    cut: words.length > most,
    calls,
    opens: fails && opensOne ? (calls[0]?.name ?? 'unfinished') : undefined,
    reasoning:
      calling || resumed !== undefined
        ? 0
        : number(settings, 'reasoning', request.reasoning === true ? 3 : 0),
    intervalMs: number(settings, 'interval_ms', 0),
    failAt: fails ? spot('fail_after') : Infinity,
    stallAt: spot('stall_after'),
  }
}
