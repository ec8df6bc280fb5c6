// Decides how a model call that broke off goes on. The journal alone decides, so that any process
// decides the same.
import { fault, hasCode } from '#kernel'
import type { Model } from '#ports/models.ts'
import type { Plan } from '../../journal/records.ts'
import type { CallState, Step } from '../../journal/state.ts'

/**
 * `begin`: nothing had come, so the call is simply made. `end`: the kept text cannot be continued.
 * `keep`: characters (UTF-16 code units) of the step's text that stay.
 */
export type Recovery = { readonly plan: Plan | 'begin' | 'end'; readonly keep: number }
type Terms = {
  readonly supports: Model['supports']
  /** The agent's wish. */
  readonly onInterrupt: 'continue' | 'restart'
  readonly isValid: (call: CallState['call']) => boolean
  /** Plans that the provider refused or did not follow. */
  readonly without?: ReadonlySet<Plan>
}

const restart: Recovery = { plan: 'restart', keep: 0 }

/**
 * Tries the plans in the order of what costs the customer and the reader least. Shown text of an
 * answer is never taken back, because a client may read nothing else.
 */
export function recoveryOf(
  step: Step,
  { supports, onInterrupt, isValid, without = new Set() }: Terms,
): Recovery {
  const { text, lead, shown, calls, open, checkpoint, purpose, attempt } = step
  const came = shown || calls.length > 0 || open !== undefined || checkpoint !== undefined
  if (!came && text === '') return attempt === 1 ? { plan: 'begin', keep: 0 } : restart
  const isAnswer = purpose === 'answer'
  const all = text.length
  if (supports.resume && checkpoint && !without.has('resume'))
    return { plan: 'resume', keep: isAnswer ? all : checkpoint.keep }
  const isWhole =
    calls.length > 0 &&
    open === undefined &&
    calls.every(({ call, refused }) => refused === undefined && isValid(call))
  if (isWhole && onInterrupt !== 'restart') return { plan: 'accept', keep: all }
  // The text of a plan and of its steps is shown as reasoning, which may begin again. Half of such
  // a text is of no use.
  if (!isAnswer) return restart
  if (all === lead) return { plan: 'restart', keep: all }
  // From here on only text is kept. All tool calls, complete or not, are requested again.
  const ways: readonly Plan[] =
    onInterrupt === 'restart'
      ? ['regenerate']
      : [...(supports.prefill ? ['prefill' as const] : []), 'instruct', 'regenerate']
  return { plan: ways.find(way => !without.has(way)) ?? 'end', keep: all }
}

/** The instruction for a provider that cannot continue the model's own words. */
export const continueInstruction =
  'The connection broke while you were answering. Your answer so far stands above and the ' +
  'reader has seen it. Go on exactly where it stops, in the same language and form, ' +
  'without repeating any of it and without remarks about the interruption. Your tools are ' +
  'the same as before.'

/** So many characters at the end of the kept text are searched for a repetition. */
const overlapMax = 200
/** A shorter repetition is taken for a coincidence. */
const overlapMin = 12
/** A text that repeats so many characters of the beginning, and then differs, is another answer. */
const otherMin = 40

const otherAnswer =
  'the answer broke off, and what came again was another one: what stands is all there is'
/** The error of a further try whose text does not continue what the reader has seen. */
export const differs = (): Error => fault('MODEL_FAILED', { why: otherAnswer })
export const isDiffering = (error: unknown): boolean =>
  hasCode(error, 'MODEL_FAILED') && error.values['why'] === otherAnswer

/** A filter between the kept text and new text. It lets through only what is new. */
export type Seam = {
  /** Takes new text; returns what may be shown now. */
  push(text: string): string
  /** The text has ended; returns what was held back. */
  end(): string
  /**
   * Whether text is held back or still expected. Then no record may be written that covers all text
   * so far.
   */
  holds(): boolean
}

const commonLength = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}
/** Returns what is new at the beginning of a continuation. Throws where it is another answer. */
function joined(kept: string, begun: string): string {
  // The model repeated its answer from the beginning.
  if (kept !== '' && begun.startsWith(kept)) return begun.slice(kept.length)
  for (let size = Math.min(overlapMax, begun.length, kept.length); size >= overlapMin; size--)
    if (kept.endsWith(begun.slice(0, size))) return begun.slice(size)
  if (commonLength(kept, begun) >= otherMin) throw differs()
  return begun
}

/**
 * Whether the text so far may still become a repetition: of the end of the kept text, or of all of
 * it.
 */
function isUndecided(kept: string, begun: string): boolean {
  if (begun.length < kept.length && kept.startsWith(begun)) return true
  const end = kept.slice(-overlapMax)
  const at = end.indexOf(begun)
  return at >= 0 && end.length - at > begun.length
}

/**
 * Drops what a continuation repeats of the kept text. It holds the first characters back until it
 * can tell.
 */
export function createSeam(kept: string): Seam {
  let held: string | undefined = ''
  const release = (): string => {
    const begun = held ?? ''
    held = undefined
    return begun === '' ? '' : joined(kept, begun)
  }
  return {
    push(text) {
      if (held === undefined) return text
      held += text
      return isUndecided(kept, held) ? '' : release()
    },
    end: release,
    holds: () => held !== undefined && held !== '',
  }
}

/**
 * Drops exactly the text that the reader has seen. Throws where the text differs or is shorter.
 * Line breaks before the text are ignored.
 */
export function createRepeat(seen: string, { fromStart }: { readonly fromStart: boolean }): Seam {
  let at = 0
  let begun = !fromStart
  const expected = fromStart ? seen.replace(/^\n+/, '') : seen
  return {
    push(text) {
      const rest = begun ? text : text.replace(/^\n+/, '')
      if (rest === '') return ''
      begun = true
      const expectedText = expected.slice(at, at + rest.length)
      if (!rest.startsWith(expectedText)) throw differs()
      at += expectedText.length
      return rest.slice(expectedText.length)
    },
    end() {
      if (at < expected.length) throw differs()
      return ''
    },
    holds: () => at < expected.length,
  }
}
