// From an upload to its text: which parser, for how long, and where the text is kept. Repeatable at
// any point.
import { textCharsMax } from '#contracts/files.ts'
import { isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { ScopedBlobs } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { Parsed, Parser } from '../api.ts'
import type { Keeper } from '../blobs/blobs.ts'
import { Uploads, type Upload } from '../collections.ts'
import { inlineTextCharsMax, parseTriesMax, type FilesConfig } from '../config.ts'
import { cut } from './text.ts'

type Org = { readonly orgId: string }
type Outcome = Parsed | { readonly failed: string }
type Deps = {
  store: ScopedStorage
  blobs: ScopedBlobs
  clock: Clock
  log: Log
  config: FilesConfig
  parsers: () => readonly Parser[]
  keeper: Keeper
}

const encodedCharsAtOnce = 65_536

/** Never half a character at a border, where the encoder would replace it. */
async function* encoded(text: string): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for (let at = 0; at < text.length; ) {
    const part = cut(text.slice(at, at + encodedCharsAtOnce + 1), encodedCharsAtOnce)
    yield encoder.encode(part)
    at += part.length
  }
}

export function createParsing({ store, blobs, clock, log, config, parsers, keeper }: Deps) {
  const choose = (mime: string, filename: string): Parser | undefined => {
    const accepting = parsers().filter(parser => parser.accepts(mime, filename))
    return accepting.find(({ fallback }) => !fallback) ?? accepting[0]
  }

  /** A failing parser is an outcome. A failing store and a stop are thrown. */
  const outcomeOf = async (
    scope: Org,
    { id, hash, mime, filename }: Upload,
    stop: AbortSignal,
  ): Promise<Outcome> => {
    const parser = choose(mime.split(';', 1)[0]!.trim().toLowerCase(), filename)
    if (!parser) return { unsupported: 'Nothing here reads this kind of file.' }
    const limit = new AbortController()
    const over = new AbortController()
    let lost: { error: unknown } | undefined
    async function* bytes(): AsyncGenerator<Uint8Array> {
      try {
        yield* blobs.tenant(scope).get(hash, { signal: limit.signal })
      } catch (error) {
        if (!limit.signal.aborted) lost = { error }
        throw error
      }
    }
    const work = (async () =>
      parser.parse(bytes(), { signal: limit.signal, textMax: textCharsMax, mime }))()
    const late = clock.sleep(config.parse_ms, AbortSignal.any([stop, over.signal])).then(
      () => 'late' as const,
      () => 'stopped' as const,
    )
    try {
      const first = await Promise.race([work, late])
      if (first === 'late')
        return { failed: `Reading it took longer than ${config.parse_ms / 1000} s.` }
      if (first === 'stopped') throw stop.reason
      return first
    } catch (error) {
      stop.throwIfAborted()
      if (lost) throw lost.error
      if (isFault(error)) return { failed: error.message }
      log('warn', 'parse', { upload: id, parser: parser.name, error })
      return { failed: 'It could not be read.' }
    } finally {
      over.abort()
      limit.abort()
      work.catch(() => 'told already, or too late')
    }
  }

  /** Stores the text first and records it last, so that after a crash the work can be repeated. */
  const settle = async (scope: Org, { id }: Upload, outcome: Outcome): Promise<void> => {
    const own = store.tenant(scope)
    const unset = ['storingSince', 'parsingSince']
    const still = { if: { status: 'parsing' } }
    if ('failed' in outcome || 'unsupported' in outcome) {
      const [status, detail] =
        'failed' in outcome ? ['failed', outcome.failed] : ['unsupported', outcome.unsupported]
      await own.update(Uploads, id, { set: { status, detail: cut(detail, 500) }, unset }, still)
      return
    }
    const text = cut(outcome.text, textCharsMax)
    const isCut = (outcome.truncated ?? false) || text.length < outcome.text.length
    const set = {
      status: 'ready',
      textChars: text.length,
      ...(isCut
        ? { textCut: true, detail: `Of its text, the first ${text.length} characters are kept.` }
        : {}),
    }
    if (text.length <= inlineTextCharsMax) {
      await own.update(Uploads, id, { set: { ...set, text }, unset }, still)
      return
    }
    const { hash: textHash } = await keeper.put(scope, encoded(text), {
      bytesMax: textCharsMax * 3,
      refer: async blob =>
        void (await own.update(Uploads, id, { set: { textHash: blob.hash } }, still)),
    })
    if (await own.update(Uploads, id, { set, unset }, still)) return
    // The upload went meanwhile, or somebody else was first.
    await keeper.release(scope, [textHash], async () => undefined)
  }

  return {
    async parse(scope: Org, upload: Upload, stop: AbortSignal): Promise<void> {
      await settle(scope, upload, await outcomeOf(scope, upload, stop))
    },
    /**
     * As a job, at least once. A file whose parser takes the process down with it is given up after
     * some tries.
     */
    async job(scope: Org, id: string, stop: AbortSignal): Promise<void> {
      const upload = await store
        .tenant(scope)
        .update(
          Uploads,
          id,
          { inc: { tries: 1 } },
          { if: { status: 'parsing', storingSince: { exists: false } } },
        )
      if (!upload) return
      if (upload.tries > parseTriesMax)
        await settle(scope, upload, { failed: 'It could not be read; each try broke off.' })
      else await this.parse(scope, upload, stop)
    },
  }
}
export type Parsing = ReturnType<typeof createParsing>
