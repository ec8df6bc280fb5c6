// All state of a run, folded from its stream. The same records always fold to the same state, and
// so to the same next action.
import type { Json } from '#kernel'
import type { NewEvent } from '#ports/eventlog.ts'
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

type Fields = Record<string, never>
/** The step that a record belongs to. The first step begins without a record of its own. */
function stepOf(state: State, fields: Fields): Step {
  if (state.steps.length === 0) state.steps.push(emptyStep(0, 'answer'))
  return state.steps[fields['step']!]!
}
const callOf = (state: State, fields: Fields): CallState | undefined =>
  state.steps[fields['step']!]?.calls.find(({ call }) => call.id === fields['call_id'])

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
/** Counts the death of a driver against what the journal shows as under way. */
function died(state: State): void {
  if (state.ending || state.terminal) return
  for (const one of callsUnderWay(state)) one.deaths++
  const step = modelCallIn(state)
  if (step !== undefined)
    state.deaths = { step, times: state.deaths.step === step ? state.deaths.times + 1 : 1 }
}

const progress = (state: State) => {
  state.takes = state.tries = 0
}
function grow(state: State, step: Step, text: string): void {
  step.text += text
  if (step.text.length <= step.furthest) return
  step.furthest = step.text.length
  state.deaths = { step: step.index, times: 0 }
  progress(state)
}

const folds: Readonly<Record<string, (state: State, fields: Fields) => void>> = {
  'took@1': (state, fields) => {
    if (fields['died']) died(state)
    state.epoch = fields['epoch']!
    state.takes++
  },
  'step@1': (state, { step, purpose }) => {
    state.steps.push(emptyStep(step!, purpose!))
    progress(state)
  },
  token: (state, fields) => {
    const step = stepOf(state, fields)
    const text: string = fields['text']!
    step.shown = true
    if (step.text === '' && text !== '' && text === separatorBefore(state, step.index)) {
      Object.assign(step, {
        text,
        lead: text.length,
        furthest: Math.max(step.furthest, text.length),
      })
    } else grow(state, step, text)
  },
  reasoning: (state, fields) => {
    const step = stepOf(state, fields)
    step.shown = true
    // The text of a plan and of its steps is shown as reasoning. The answer comes after them.
    const text: string = fields['text']!
    if (step.purpose === 'answer') step.deliberated += text.length
    else grow(state, step, text)
  },
  'attempt@1': (state, fields) => {
    const step = stepOf(state, fields)
    const goesOn = fields['plan'] === 'resume'
    Object.assign(step, {
      attempt: fields['attempt'],
      text: step.text.slice(0, fields['keep']),
      shown: false,
      deliberated: 0,
      asked: undefined,
      open: undefined,
      ...(goesOn ? {} : { calls: [], checkpoint: undefined }),
    })
    state.tries++
  },
  'asked@1': (state, fields) => {
    stepOf(state, fields).asked = fields['input_tokens']
  },
  'open@1': (state, fields) => {
    stepOf(state, fields).open = fields['id']
  },
  'call@1': (state, fields) => {
    const step = stepOf(state, fields)
    if (!step.calls.some(({ call }) => call.id === (fields['call'] as unknown as ToolCall).id))
      step.calls.push({
        call: fields['call']!,
        ...(fields['refused'] === undefined ? {} : { refused: fields['refused'] }),
        begun: false,
        asked: undefined,
        answered: undefined,
        outcome: undefined,
        deaths: 0,
      })
    step.open = undefined
  },
  'checkpoint@1': (state, fields) => {
    const step = stepOf(state, fields)
    // Within a tool call the checkpoint is of no use: the first half of the call's arguments is not
    // kept.
    if (step.open === undefined)
      step.checkpoint = { response: fields['response']!, at: fields['at']!, keep: step.text.length }
  },
  'thought@1': (state, fields) => {
    stepOf(state, fields).accepted = {
      inputTokens: fields['input_tokens']!,
      outputTokens: fields['output_tokens']!,
      finish: fields['finish']!,
    }
    progress(state)
  },
  tool_call: (state, fields) => {
    const one = callOf(state, fields)
    if (one) one.begun = true
  },
  tool_result: (state, fields) => {
    const one = callOf(state, fields)
    if (one) one.outcome = { status: fields['status']!, content: fields['content']! }
    progress(state)
  },
  choice_answer: (state, fields) => {
    const one = callOf(state, fields)
    if (one) one.answered = { status: fields['status']!, answer: fields['answer']! }
    progress(state)
  },
  plan: (state, fields) => {
    const { steps, revision, from } = fields as unknown as {
      steps: { title: string }[]
      revision: number
      from: number
    }
    Object.assign(state, {
      revision,
      plannedIn: from,
      planFailed: false,
      plan: [
        ...state.plan.filter(({ status }) => status === 'done' || status === 'failed'),
        ...steps.map(({ title }): PlanStep => ({ title, status: 'pending', detail: '' })),
      ],
    })
  },
  plan_step: (state, fields) => {
    const { index, status, detail } = fields as unknown as {
      index: number
      status: PlanStep['status']
      detail?: string
    }
    const step = state.plan[index]
    if (step) Object.assign(step, { status, detail: detail ?? '' })
    if (status === 'failed') state.planFailed = true
  },
  context_cut: (state, fields) => {
    state.cut = JSON.stringify(fields)
  },
  'holding@1': (state, { part, amount }) => {
    state.parts.push({ part: part!, amount: amount!, held: false })
  },
  'held@1': (state, { part }) => {
    for (const one of state.parts) if (one.part === part) one.held = true
  },
  'ending@1': (state, fields) => {
    state.ending = fields as unknown as Ending
  },
  done: (state, { status }) => {
    state.terminal = { type: 'done', status: status! }
  },
  error: (state, { code, detail }) => {
    state.terminal = { type: 'error', code: code!, detail: detail! }
  },
}
const asks = ['user_choice', 'quiz', 'approval'] as const
const isAsk = (type: string): type is Asked['kind'] => (asks as readonly string[]).includes(type)

/**
 * Folds one record into the state; without `seq` it is the next one. Types that only newer versions
 * know change nothing.
 */
export function foldOne(state: State, record: NewEvent & { readonly seq?: number }): State {
  const { seq = state.head + 1, type, data } = record
  state.head = seq
  const fields = data as Fields
  if (isAsk(type)) {
    const one = callOf(state, fields)
    if (one)
      one.asked = { id: fields['question_id']!, kind: type, number: state.asked, data: fields }
    state.asked++
  } else folds[type]?.(state, fields)
  return state
}
