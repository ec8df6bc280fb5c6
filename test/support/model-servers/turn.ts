// What a local model server is told to do with one call, and how: the same for every wire.

export type Call = {
  readonly id?: string
  readonly name: string
  /** As the wire brings it: not necessarily JSON. */
  readonly arguments: string
}
/** Where something happens to the answer's bytes: an offset into its text. */
export type At = (body: string) => number
export type Turn = {
  readonly reasoning?: string
  readonly text?: string
  readonly refusal?: string
  readonly calls?: readonly Call[]
  /** Default: what follows from the rest. */
  readonly finish?: 'stop' | 'length' | 'filtered' | 'error'
  /** False: the provider does not count. */
  readonly usage?: false | { readonly input: number; readonly output: number }
  /** Another answer than 200: `body` as it is, or the error in the wire's form. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly error?: { readonly type: string; readonly code?: string; readonly message: string }
  readonly body?: string
  /** No answer at all. */
  readonly hangs?: true
  /** The connection is cut, the server says nothing more, or the answer ends cleanly, there. */
  readonly cutAt?: At
  readonly stallAt?: At
  readonly endAt?: At
  /** Stands in the wire before the frame of that number. */
  readonly inject?: { readonly before: number; readonly frame: string }
  /** In one piece instead of many odd ones. */
  readonly whole?: true
}
export type Said = {
  readonly role: string
  readonly text: string
  readonly results: readonly string[]
}
/** A request as any wire tells it. */
export type Asked = {
  readonly model: string
  readonly said: readonly Said[]
  readonly tools: readonly string[]
  readonly outputTokensMax: number
  /** The beginning of the answer that is to be continued. */
  readonly beginning: string
  readonly body: Readonly<Record<string, unknown>>
}
export type Wire = {
  readonly path: string
  /** Why the vendor would refuse it. */
  check(
    body: Record<string, unknown>,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): string | undefined
  asked(body: Record<string, unknown>): Asked
  /** The answer as server-sent events, without what goes wrong. */
  frames(turn: Turn, asked: Asked): string[]
  /** A refusal's body. */
  refusal(error: NonNullable<Turn['error']>): string
}

export const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? []
/** Pieces of odd lengths. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0, size = 3; at < text.length; at += size, size = (size * 5) % 11 || 7)
    pieces.push(text.slice(at, at + size))
  return pieces
}
export const frame = (data: unknown, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ` +
  `${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
export const usageOf = ({
  usage,
  text = '',
}: Turn): { input: number; output: number } | undefined =>
  usage === false ? undefined : (usage ?? { input: 12, output: Math.max(1, wordsOf(text).length) })

const longWords = Array.from({ length: 60 }, (_, n) => `word${n} `)
  .join('')
  .trimEnd()

/**
 * A model that can do what the conformance kit asks for: it writes sixty words, goes on after a
 * beginning, calls `add`, and uses what that answered. A word is a token.
 */
export function talk({ said, tools, outputTokensMax, beginning }: Asked): Turn {
  const results = said.at(-1)!.results
  const last = said.findLast(({ role, text }) => role === 'user' && text !== '')?.text ?? ''
  if (results.length === 0 && tools.includes('add') && /\badd\b/i.test(last))
    return { calls: [{ name: 'add', arguments: '{"a":1}' }], finish: 'stop' }
  const all = results.length > 0 ? `The tool said: ${results.join(', ')}` : longWords
  const words = wordsOf(all.startsWith(beginning) ? all.slice(beginning.length) : all)
  const cut = words.length > outputTokensMax
  return { text: words.slice(0, outputTokensMax).join(''), finish: cut ? 'length' : 'stop' }
}
/** A refusal as both of OpenAI's wires word it. */
export const openaiRefusal: Wire['refusal'] = ({ type, code, message }) =>
  JSON.stringify({ error: { message, type, param: null, code: code ?? null } })
