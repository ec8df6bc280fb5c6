// A JSON body with one field that is too long for memory. That field is decoded to bytes as it
// arrives; the rest is checked like any other body.
import { jsonParser, type Token } from 'stream-json/core/parser.js'
import { getManyValues, isMany, none } from 'stream-chain/defs.js'
import type { StreamedBody } from '#contracts/contract.ts'
import { fault } from '#contracts/faults.ts'
import { base64Decoder } from './base64.ts'
import { createBuilder, type Root, type Sink } from './builder.ts'
import type { Check } from '../validation/validate.ts'

type Shape = {
  readonly field: string
  /** The field's encoding. */
  readonly encoding: 'base64' | 'text'
  readonly check: Check
  /**
   * Checks the fields before the content early, without required fields, so that a wrong body is
   * refused before its content is read.
   */
  readonly checkEarly: Check
}
type Decoder = { decode(text: string): Uint8Array; end(): void }

/**
 * Encodes text as UTF-8. A lone surrogate has no bytes, so a text that contains one is refused
 * instead of changed.
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
 * Turns the streamed field's text into bytes. It decodes once for each part of the body, not for
 * each token.
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
 * Turns bytes into tokens. MALFORMED_TEXT and MALFORMED_JSON; the parser's messages are not passed
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
      // The library ends its input by a symbol that its types do not declare.
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
 * `check` gets the body with '' as content. `content` throws every error of the body, a duplicate
 * field included.
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
