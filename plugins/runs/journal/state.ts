// All state of a run: its shape, and what follows from it. `fold.ts` computes it from the stream.
import type { Json } from '#kernel'
import type { Checkpoint, ToolCall, Usage } from '#ports/models.ts'
import type { Ending, Purpose, Terminal } from './records.ts'

export type ToolStatus = 'ok' | 'failed' | 'unknown' | 'declined'
export type Outcome = { readonly status: ToolStatus; readonly content: string }
/** A question to the user: the event as clients saw it. */
export type Asked = {
  readonly id: string
  readonly kind: 'user_choice' | 'quiz' | 'approval'
  readonly number: number
  readonly data: Readonly<Record<string, Json>>
}
export type Answered = { readonly status: 'answered' | 'expired'; readonly answer: Json }
export type CallState = {
  readonly call: ToolCall
  /** Why its arguments were refused. */
  readonly refused?: string
  /** The body may have begun. */
  begun: boolean
  asked: Asked | undefined
  answered: Answered | undefined
  outcome: Outcome | undefined
  /** Drivers that died or hung during this call. */
  deaths: number
}

export type Step = {
  readonly index: number
  readonly purpose: Purpose
  /** The newest try of the model call, from 1. */
  attempt: number
  /** The text that is kept. */
  text: string
  /**
   * Characters at the beginning of `text` that are no output of the model: the separator from the
   * answer before a tool call.
   */
  lead: number
  /** The longest text that any try reached. A try that passes it has made progress. */
  furthest: number
  /** Clients were shown something of the newest try. */
  shown: boolean
  /** Characters of reasoning in the newest try. */
  deliberated: number
  /** Estimated input tokens of the newest try. Undefined before it is made. */
  asked: number | undefined
  calls: CallState[]
  /** The id of a tool call whose arguments are still incomplete. */
  open: string | undefined
  /** Where the provider can resume the answer, and the length of the text there. */
  checkpoint: (Checkpoint & { readonly keep: number }) | undefined
  accepted: (Usage & { readonly finish: string }) | undefined
}
export type PlanStep = {
  readonly title: string
  status: 'pending' | 'running' | 'done' | 'failed' | 'skipped'
  detail: string
}
export type Part = { readonly part: string; readonly amount: number; held: boolean }

export type State = {
  /** The seq of the last record. */
  head: number
  epoch: number
  steps: Step[]
  /** Drivers that took over, and model calls that broke off, since the last progress. */
  takes: number
  tries: number
  /** Drivers that died or hung in the same model call, since its text last grew. */
  deaths: { readonly step: number; readonly times: number }
  plan: PlanStep[]
  /** Plans so far. A new plan replaces the steps that the former one had not begun. */
  revision: number
  /** The model call that wrote the newest plan. */
  plannedIn: number
  /** A step of the newest plan failed. */
  planFailed: boolean
  asked: number
  parts: Part[]
  /** What clients were last told about a conversation that exceeds the model's window. */
  cut: string
  ending: Ending | undefined
  terminal: Terminal | undefined
}

export const emptyState = (): State => ({
  head: 0,
  epoch: 0,
  steps: [],
  takes: 0,
  tries: 0,
  deaths: { step: 0, times: 0 },
  plan: [],
  revision: 0,
  plannedIn: -1,
  planFailed: false,
  asked: 0,
  parts: [],
  cut: '',
  ending: undefined,
  terminal: undefined,
})

export const emptyStep = (index: number, purpose: Purpose): Step => ({
  index,
  purpose,
  attempt: 1,
  text: '',
  lead: 0,
  furthest: 0,
  shown: false,
  deliberated: 0,
  asked: undefined,
  calls: [],
  open: undefined,
  checkpoint: undefined,
  accepted: undefined,
})

export const currentStep = (state: State): Step | undefined => state.steps.at(-1)
/** What the user reads: the text of every model call whose purpose was the answer. */
export const answerOf = ({ steps }: State): string =>
  steps
    .filter(({ purpose }) => purpose === 'answer')
    .map(({ text }) => text)
    .join('')
/** Every call that has asked the user, in the order of the questions. */
export const askedIn = ({ steps }: State): (CallState & { readonly asked: Asked })[] =>
  steps
    .flatMap(({ calls }) => calls)
    .filter((one): one is CallState & { asked: Asked } => one.asked !== undefined)
    .sort((a, b) => a.asked.number - b.asked.number)
/** The number of questions that were answered or have expired. */
export const answeredIn = (state: State): number =>
  askedIn(state).filter(({ answered }) => answered !== undefined).length
export const usageOf = ({ steps }: State): Usage =>
  steps.reduce(
    (sum, { accepted }) => ({
      inputTokens: sum.inputTokens + (accepted?.inputTokens ?? 0),
      outputTokens: sum.outputTokens + (accepted?.outputTokens ?? 0),
    }),
    { inputTokens: 0, outputTokens: 0 },
  )
export const heldBeyond = ({ parts }: State): number =>
  parts.reduce((sum, { amount, held }) => sum + (held ? amount : 0), 0)

/**
 * Returns what separates a further part of the answer from the part before it. Clients join the
 * fragments as they come.
 */
export function separatorBefore({ steps }: State, index: number): string {
  const before = steps.findLast(
    (step, at) => at < index && step.purpose === 'answer' && step.text !== '',
  )?.text
  if (before === undefined || before.endsWith('\n\n')) return ''
  return before.endsWith('\n') ? '\n' : '\n\n'
}

/**
 * The model call that is under way or comes next. Undefined while tools are called, or when nothing
 * is left to do.
 */
export function modelCallIn(state: State): number | undefined {
  const step = currentStep(state)
  if (!step?.accepted) return step?.index ?? 0
  return step.calls.length > 0 && callsUnderWay(state).length === 0 ? step.index + 1 : undefined
}
/** Tool calls whose bodies may be running. Where none has begun, the next call. */
export function callsUnderWay(state: State): CallState[] {
  const step = currentStep(state)
  const open = step?.accepted ? step.calls.filter(({ outcome }) => outcome === undefined) : []
  const begun = open.filter(one => one.begun)
  return begun.length > 0 ? begun : open.slice(0, 1)
}
