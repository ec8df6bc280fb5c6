// The built-in parser, for files that are text.
import { TextDecoder } from 'node:util'
import { fault } from '#kernel'
import type { Parsed, Parser } from '../api.ts'

/** Media types that are text. Bytes that are not text are an error then. */
const saidData =
  /^text\/|^application\/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml)$|\+(?:json|xml|yaml)$/
const saidCode = /^application\/(?:sql|javascript|x-javascript|ecmascript|x-sh|rtf|graphql)$/
const isSaid = (mime: string) => saidData.test(mime) || saidCode.test(mime)
/** Never text, whatever its first bytes look like. Anything else may be: its content tells. */
const neverMedia = /^(?:image|audio|video|font|model)\//
const neverFile = /^application\/(?:pdf|zip|gzip|x-7z-compressed|x-tar|x-bzip2|vnd\.rar|msword)/
const neverOffice = /^application\/vnd\.(?:ms-|openxmlformats|oasis)/
const isNever = (mime: string) =>
  neverMedia.test(mime) || neverFile.test(mime) || neverOffice.test(mime)
/** Control characters that no text has: C0 without tab, line and form feeds and escape. */
const binary = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/

/** At most `max` UTF-16 code units, never half a character. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)
}

/**
 * The named charset, else that of a byte-order mark, else UTF-8 (WHATWG Encoding, section 4.2).
 * INVALID_FIELD for a name that nobody knows.
 */
function decoderFor(mime: string, first: Uint8Array): TextDecoder {
  const named = /;\s*charset="?([^\s";]+)/i.exec(mime)?.[1]
  const marked =
    first[0] === 0xff && first[1] === 0xfe
      ? 'utf-16le'
      : first[0] === 0xfe && first[1] === 0xff
        ? 'utf-16be'
        : 'utf-8'
  try {
    return new TextDecoder(named ?? marked, { fatal: true })
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: 'mime', why: 'names a charset that is not known' },
      { cause },
    )
  }
}

async function read(
  bytes: AsyncIterable<Uint8Array>,
  mime: string,
  textMax: number,
  isText: boolean,
): Promise<Parsed | undefined> {
  let decoder: TextDecoder | undefined
  let length = 0
  const parts: string[] = []
  /** False when this is no text. */
  const add = (part?: Uint8Array): boolean => {
    let text: string
    try {
      text = part
        ? (decoder ??= decoderFor(mime, part)).decode(part, { stream: true })
        : (decoder?.decode() ?? '')
    } catch (error) {
      if (error instanceof TypeError) return false
      throw error
    }
    parts.push(text)
    length += text.length
    return isText || !binary.test(text)
  }
  for await (const part of bytes) {
    if (!add(part)) return undefined
    if (length > textMax) return { text: cut(parts.join(''), textMax), truncated: true }
  }
  return add() ? { text: parts.join('') } : undefined
}

export const textParser: Parser = {
  name: 'text',
  fallback: true,
  accepts: mime => isSaid(mime) || !isNever(mime),
  async parse(bytes, { textMax, mime }) {
    const isText = isSaid(mime.split(';', 1)[0]!.trim().toLowerCase())
    const parsed = await read(bytes, mime, textMax, isText)
    if (parsed) return parsed
    if (!isText)
      return { unsupported: 'The content is no text, and nothing here reads this kind of file.' }
    throw fault('INVALID_FIELD', {
      field: 'mime',
      why:
        'the content is not text in the charset that is named, UTF-8 where none is; name it, ' +
        'as in text/csv; charset=windows-1252',
    })
  },
}
