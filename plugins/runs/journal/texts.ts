// Long messages and answers of runs. The run's document holds an excerpt. A stream for each text
// holds the whole text for as long as the run exists.
import { hasCode } from '#kernel'
import type { Eventlog, ScopedEventlog } from '#ports/eventlog.ts'
import { clip, fits, piecesOf } from './bytes.ts'
import { textStreamOf, type LongText, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'

/** Bytes of one record of such a stream, as JSON; and how many records are read at a time. */
const pieceBytesMax = 262_144
const pageRecords = 16

export type Texts = ReturnType<typeof createTexts>

/**
 * Writes the pieces that the stream lacks. Every writer cuts the text at the same places, so that
 * two writers do no harm.
 */
async function keep(log: Eventlog, stream: string, text: string, bytesMax: number): Promise<void> {
  const pieces = piecesOf(text, bytesMax)
  for (;;) {
    const { last } = await log.bounds(stream)
    if (last >= pieces.length) return
    try {
      await log.append(stream, [{ type: 'text@1', hidden: true, data: { text: pieces[last]! } }], {
        expect: last,
      })
    } catch (error) {
      // Another process appended the same piece.
      if (!hasCode(error, 'STREAM_MOVED')) throw error
    }
  }
}
async function read(log: Eventlog, stream: string): Promise<string> {
  const pieces: string[] = []
  for (let after = 0; ; ) {
    const page = await log.read(stream, { after, limit: pageRecords })
    if (page.length === 0) return pieces.join('')
    pieces.push(...page.map(({ data }) => (data as { text: string }).text))
    after = page.at(-1)!.seq
  }
}

export function createTexts({
  eventlog,
  config,
}: {
  eventlog: ScopedEventlog
  config: RunsConfig
}) {
  const excerptBytesMax = config.excerpt_bytes_max
  const bytesMax = Math.min(pieceBytesMax, Math.floor(eventlog.limits.appendBytesMax / 2))
  /** Returns what the run's document holds of the text. */
  const shorten = async (
    { orgId, id }: Pick<Run, 'orgId' | 'id'>,
    which: LongText,
    text: string,
  ): Promise<string> => {
    if (fits(text, excerptBytesMax)) return text
    await keep(eventlog.tenant({ orgId }), textStreamOf(id, which), text, bytesMax)
    return clip(text, excerptBytesMax)
  }
  const longWith = ({ long = [] }: Pick<Run, 'long'>, which: LongText) => ({
    long: [...new Set([...long, which])],
  })
  return {
    /**
     * Returns the run as its document holds it. Call it before the document is written, so that
     * whoever finds the document finds the texts.
     */
    async stored(run: Run): Promise<Run> {
      const message = await shorten(run, 'message', run.request.message)
      const asked: Run =
        message === run.request.message
          ? run
          : { ...run, request: { ...run.request, message }, ...longWith(run, 'message') }
      return run.answer === undefined
        ? asked
        : { ...asked, ...(await this.answered(asked, run.answer)) }
    },
    /** Returns what the run's document holds of the answer. */
    async answered(
      run: Pick<Run, 'orgId' | 'id' | 'long'>,
      whole: string,
    ): Promise<Pick<Run, 'answer' | 'long'>> {
      const answer = await shorten(run, 'answer', whole)
      return { answer, ...(answer === whole ? {} : longWith(run, 'answer')) }
    },
    /** The run with its message and its answer whole. */
    async whole<R extends Pick<Run, 'orgId' | 'id' | 'long' | 'request' | 'answer'>>(
      run: R,
    ): Promise<R> {
      const { long = [] } = run
      const log = eventlog.tenant(run)
      if (long.length === 0) return run
      const message = long.includes('message')
        ? await read(log, textStreamOf(run.id, 'message'))
        : run.request.message
      const answer = long.includes('answer')
        ? await read(log, textStreamOf(run.id, 'answer'))
        : run.answer
      return {
        ...run,
        request: { ...run.request, message },
        ...(answer === undefined ? {} : { answer }),
      }
    },
    /** Removes the texts of a run that was not stored, or that is being removed. */
    async remove({ orgId, id, long = [] }: Pick<Run, 'orgId' | 'id' | 'long'>): Promise<void> {
      for (const which of long) await eventlog.tenant({ orgId }).remove(textStreamOf(id, which))
    },
  }
}
