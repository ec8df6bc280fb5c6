// What becomes of a model call that broke off after it had shown something: decided from the journal alone, so that any process decides the same.
import type { Model } from '#ports/models.ts'
import type { Plan } from './records.ts'
import type { CallState, Step } from './state.ts'

export type Recovery = { readonly plan: Plan | 'begin'; /** Characters (UTF-16 code units) of the step's text that stay. */ readonly keep: number }
type Terms = { readonly supports: Model['supports']; /** The agent's wish. */ readonly onInterrupt: 'continue' | 'restart'; readonly isValid: (call: CallState['call']) => boolean }

/** Below so many characters a new beginning is better than a seam that the model has to find. */
const instructCharsMin = 400

const restart: Recovery = { plan: 'restart', keep: 0 }

/** `begin`: nothing had come, the call is simply made. In the order of what costs the customer and the reader least. */
export function recoveryOf(step: Step, { supports, onInterrupt, isValid }: Terms): Recovery {
  const { text, shown, calls, open, checkpoint, purpose, reasoning, attempt } = step
  const came = shown || calls.length > 0 || open !== undefined || checkpoint !== undefined
  if (!came && text === '') return attempt === 1 ? { plan: 'begin', keep: 0 } : restart
  if (supports.resume && checkpoint) return { plan: 'resume', keep: checkpoint.keep }
  if (onInterrupt === 'restart') return restart
  if (calls.length > 0 && open === undefined && calls.every(({ call, refused }) => refused === undefined && isValid(call))) return { plan: 'accept', keep: text.length }
  // Of a plan half a list is worth nothing; of deliberation nothing can be continued, and an empty beginning says nothing.
  if (purpose !== 'answer' || reasoning || text === '') return restart
  // From here on what is kept is text: a call that was not whole, and whole ones beside it, are asked for again.
  if (supports.prefill) return { plan: 'prefill', keep: text.length }
  return text.length >= instructCharsMin ? { plan: 'instruct', keep: text.length } : restart
}

/** What the model is told where it cannot be made to continue its own words. */
export const continueInstruction = 'The connection broke while you were answering. Your answer so far stands above and the reader has seen it. Go on exactly where it stops, in the same language and form, without repeating any of it and without remarks about the interruption. Your tools are the same as before.'

/** Characters in which a repetition of the end of what stands is looked for. */
const overlapMax = 200
/** Shorter than this a repetition is an accident: "real" goes on with "ly". */
const overlapMin = 12

/** Drops what a continuation repeats of the text that stands. Holds its first characters back until that can be told; `last` lets everything go. */
export function createSeam(kept: string): (text: string, last: boolean) => string {
  let held: string | undefined = ''
  return (text, last) => {
    if (held === undefined) return text
    held += text
    if (held.length < overlapMax && !last) return ''
    const begun: string = held
    held = undefined
    for (let size = Math.min(overlapMax, begun.length, kept.length); size >= overlapMin; size--) if (kept.endsWith(begun.slice(0, size))) return begun.slice(size)
    return begun
  }
}
