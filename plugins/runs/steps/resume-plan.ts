// What becomes of a model call that broke off after it had shown something: decided from the
// journal alone, so that any process decides the same.
import { fault, hasCode } from '#kernel'
import type { Model } from '#ports/models.ts'
import type { Plan } from '../journal/records.ts'
import type { CallState, Step } from '../journal/state.ts'

/**
 * `begin`: nothing had come, the call is simply made. `end`: what stands cannot be continued.
 * `keep`: characters (UTF-16 code units) of the step's text that stay.
 */
export type Recovery = { readonly plan: Plan | 'begin' | 'end'; readonly keep: number }
type Terms = {
  readonly supports: Model['supports']
  /** The agent's wish. */
  readonly onInterrupt: 'continue' | 'restart'
  readonly isValid: (call: CallState['call']) => boolean
  /** What the provider has refused, or not kept to. */
  readonly without?: ReadonlySet<Plan>
}

const restart: Recovery = { plan: 'restart', keep: 0 }

/**
 * In the order of what costs the customer and the reader least. What was shown of an answer is
 * never taken back: a client may read nothing else.
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
  // A plan and the work on it are shown as deliberation, which may begin again: half a list is
  // worth nothing.
  if (!isAnswer) return restart
  if (all === lead) return { plan: 'restart', keep: all }
  // From here on what is kept is text: a call that was not whole, and whole ones beside it, are
  // asked for again.
  const ways: readonly Plan[] =
    onInterrupt === 'restart'
      ? ['regenerate']
      : [...(supports.prefill ? ['prefill' as const] : []), 'instruct', 'regenerate']
  return { plan: ways.find(way => !without.has(way)) ?? 'end', keep: all }
}

/** What the model is told where it cannot be made to continue its own words. */
export const continueInstruction =
  'The connection broke while you were answering. Your answer so far stands above and the ' +
  'reader has seen it. Go on exactly where it stops, in the same language and form, ' +
  'without repeating any of it and without remarks about the interruption. Your tools are ' +
  'the same as before.'

/** Characters in which a repetition of the end of what stands is looked for. */
const overlapMax = 200
/** Shorter than this a repetition is an accident: "real" goes on with "ly". */
const overlapMin = 12
/**
 * So much of the beginning again, and then something else: that is another answer, not the rest of
 * this one.
 */
const otherMin = 40

const otherAnswer =
  'the answer broke off, and what came again was another one: what stands is all there is'
/** What a further try of a call says does not fit what the reader has seen. */
export const differs = (): Error => fault('MODEL_FAILED', { why: otherAnswer })
export const isDiffering = (error: unknown): boolean =>
  hasCode(error, 'MODEL_FAILED') && error.values['why'] === otherAnswer

/** Between what stands and what comes: lets through what is new. */
export type Seam = {
  /** What may be shown now. */
  push(text: string): string
  /** Nothing more comes before what comes next: what was held back. */
  end(): string
  /**
   * Something is held back, or still awaited: nothing that counts on all text so far may be written
   * down.
   */
  holds(): boolean
}

const commonLength = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}
/** What is new of the beginning of a continuation; throws where it is another answer. */
function joined(kept: string, begun: string): string {
  // Told to go on, it began again.
  if (kept !== '' && begun.startsWith(kept)) return begun.slice(kept.length)
  for (let size = Math.min(overlapMax, begun.length, kept.length); size >= overlapMin; size--)
    if (kept.endsWith(begun.slice(0, size))) return begun.slice(size)
  if (commonLength(kept, begun) >= otherMin) throw differs()
  return begun
}

/** More of a repetition may come: of the end of what stands, or of all of it. */
function isUndecided(kept: string, begun: string): boolean {
  if (begun.length < kept.length && kept.startsWith(begun)) return true
  const end = kept.slice(-overlapMax)
  const at = end.indexOf(begun)
  return at >= 0 && end.length - at > begun.length
}

/**
 * Drops what a continuation repeats of the text that stands. Holds its first characters back until
 * that can be told.
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
 * Drops exactly what the reader has seen; throws where something else comes, or less. Line breaks
 * in front of all count for nothing.
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
