// Builds a JSON value from a parser's tokens. It bounds depth and size and refuses duplicate
// fields, which the parser does not.
import type { Token } from 'stream-json/core/parser.js'
import { fault } from '#contracts/faults.ts'
import { bodyBytesMax, depthMax } from './body.ts'

/** An open array or object. `key`: the field whose value comes next. */
type Frame = { readonly list?: unknown[]; readonly object?: Record<string, unknown>; key: string }

/**
 * Bounds the characters and values outside the content. INVALID_FIELD names the field that exceeded
 * the bound.
 */
function createBudget() {
  let left = bodyBytesMax
  return (count: number, what: string) => {
    if ((left -= count) < 0)
      throw fault('INVALID_FIELD', { field: what || 'body', why: 'is too long' })
  }
}

export type Root = Readonly<Record<string, unknown>>
/** Receives the streamed field. `begin` gets the fields before it. */
export type Sink = { begin(root: Root): void; piece(text: string): void; end(): void }

/** Builds the value; the streamed field becomes ''. */
export function createBuilder(field: string, sink: Sink) {
  const frames: Frame[] = []
  const spend = createBudget()
  let root: unknown
  let text = ''
  let streaming = false
  const top = () => frames.at(-1)!
  /** The body's field to which the current token belongs. */
  const where = () => frames[0]?.key.slice(0, 200) ?? ''
  const place = (value: unknown) => {
    const frame = frames.at(-1)
    if (!frame) root = value
    else if (frame.list) frame.list.push(value)
    else frame.object![frame.key] = value
    spend(1, where())
  }
  const open = (frame: Frame) => {
    if (frames.length === depthMax) throw fault('TOO_DEEP', { max: depthMax })
    place(frame.list ?? frame.object)
    frames.push(frame)
  }
  const startString = () => {
    text = ''
    streaming = frames.length === 1 && frames[0]!.key === field
    if (!streaming) return
    place('')
    sink.begin(frames[0]!.object!)
  }
  const startKey = () => {
    text = ''
    top().key = ''
  }
  const endKey = () => {
    if (text in top().object!)
      throw fault('INVALID_FIELD', { field: text.slice(0, 200), why: 'is given twice' })
    top().key = text
  }
  const addPiece = (piece: string) => {
    if (streaming) return sink.piece(piece)
    spend(piece.length, where())
    text += piece
  }
  const endString = () => {
    if (!streaming) return place(text)
    streaming = false
    sink.end()
  }
  return {
    root: () => root,
    take(token: Token): void {
      switch (token.name) {
        // Objects have no prototype, so `__proto__` is an ordinary field.
        case 'startObject':
          return open({ object: Object.create(null) as Record<string, unknown>, key: '' })
        case 'startArray':
          return open({ list: [], key: '' })
        case 'endObject':
        case 'endArray':
          return void frames.pop()
        case 'startString':
          return startString()
        case 'startKey':
          return startKey()
        case 'startNumber':
          text = ''
          return
        case 'stringChunk':
        case 'numberChunk':
          return addPiece(token.value)
        case 'endKey':
          return endKey()
        case 'endString':
          return endString()
        case 'endNumber':
          return place(Number(text))
        case 'trueValue':
        case 'falseValue':
        case 'nullValue':
          return place(token.value)
      }
    },
  }
}
