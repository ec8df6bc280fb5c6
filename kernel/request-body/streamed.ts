// A JSON body with one field that is too long to hold: its Base64 or its text is made bytes as it
// arrives, the rest is built and checked like any other body.
import { jsonParser, type Token } from 'stream-json/core/parser.js'
import { getManyValues, isMany, none } from 'stream-chain/defs.js'
import type { StreamedBody } from '#contracts/contract.ts'
import { fault } from '#contracts/faults.ts'
import { base64Decoder } from './base64.ts'
import { createBuilder, type Root, type Sink } from './builder.ts'
import type { Check } from '../validate.ts'

type Shape = {
  readonly field: string
  /** How bytes are written in the field. */
  readonly encoding: 'base64' | 'text'
  readonly check: Check
  /**
   * Knows no required fields: what came before the content is refused before the content is read.
   */
  readonly checkEarly: Check
}
type Decoder = { decode(text: string): Uint8Array; end(): void }

/**
 * Text as UTF-8. Half a character (a lone surrogate) has no bytes: a text that came through changed
 * must be refused.
 */
function textDecoder(refuse: (why: string) => Error): Decoder {
  let half = ''
  return {
    decode(text) {
      const all = half + text
      const last = all.charCodeAt(all.length - 1)
      half = last >= 0xd800 && last <= 0xdbff ? all.slice(-1) : ''
      const whole = all.slice(0, all.length - half.length)
      if (!whole.isWellFormed()) throw refuse('holds half a character')
      return Buffer.from(whole)
    },
    end() {
      if (half !== '') throw refuse('holds half a character')
    },
  }
}

/**
 * The streamed field's text in, bytes out: decoded once for each part of the body, not for each
 * piece of a token.
 */
function createContent(field: string, encoding: Shape['encoding'], begin: (root: Root) => void) {
  const decoder: Decoder = (encoding === 'base64' ? base64Decoder : textDecoder)(why =>
    fault('INVALID_FIELD', { field, why }),
  )
  let text = ''
  const decoded: Uint8Array[] = []
  const flush = () => {
    if (text !== '') decoded.push(decoder.decode(text))
    text = ''
  }
  const sink: Sink = {
    begin,
    piece(piece) {
      text += piece
    },
    end() {
      flush()
      decoder.end()
    },
  }
  return {
    sink,
    take(): readonly Uint8Array[] {
      flush()
      return decoded.splice(0).filter(bytes => bytes.length > 0)
    },
  }
}

/**
 * Bytes in, tokens out. MALFORMED_TEXT and MALFORMED_JSON; the parser's own messages are not passed
 * on.
 */
function createReader() {
  const parse = jsonParser({ packValues: false })
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let at = 0
  const decode = (bytes: Uint8Array | undefined) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch (cause) {
      throw fault('MALFORMED_TEXT', { field: 'body' }, { cause })
    }
  }
  const tokens = (input: string | typeof none, why: string): readonly Token[] => {
    try {
      // The library's end of input is a symbol that its types leave out.
      const made = parse(input as string)
      return isMany(made) ? getManyValues(made) : []
    } catch (cause) {
      throw fault('MALFORMED_JSON', { why }, { cause })
    }
  }
  return {
    read(bytes: Uint8Array): readonly Token[] {
      const text = decode(bytes)
      const from = at
      at += text.length
      return tokens(text, `between positions ${from} and ${at}`)
    },
    end(): readonly Token[] {
      decode(undefined)
      return tokens(none, 'it ends too early')
    },
    isEmpty: () => at === 0,
  }
}

const plain = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : value

/**
 * `check` sees the body with '' for the content. Whatever is wrong, a field given twice too, is
 * thrown by `content`.
 */
export function streamBody(
  source: AsyncIterable<Uint8Array>,
  { field, encoding, check, checkEarly }: Shape,
): StreamedBody<object> {
  const reader = createReader()
  const content = createContent(field, encoding, root => void checkEarly({ ...root }))
  const builder = createBuilder(field, content.sink)
  let fields: object | undefined
  const bytesOf = (tokens: readonly Token[]) => {
    for (const token of tokens) builder.take(token)
    return content.take()
  }
  async function* read(): AsyncGenerator<Uint8Array> {
    for await (const bytes of source) yield* bytesOf(reader.read(bytes))
    if (reader.isEmpty()) throw fault('INVALID_FIELD', { field: 'body', why: 'is required' })
    yield* bytesOf(reader.end())
    const { [field]: _, ...others } = check(plain(builder.root())) as Record<string, unknown>
    fields = others
  }
  return {
    content: read(),
    fields() {
      if (!fields)
        throw new Error('The fields of a streamed body are known when its content has ended.')
      return fields
    },
  }
}
