// Folds the stream of a run into its state. The same records always fold to the same state, and so
// to the same next action.
import type { NewEvent } from '#ports/eventlog.ts'
import type { ToolCall } from '#ports/models.ts'
import type { Ending } from './records.ts'
import {
  callsUnderWay,
  emptyStep,
  modelCallIn,
  separatorBefore,
  type Asked,
  type CallState,
  type PlanStep,
  type State,
  type Step,
} from './state.ts'

type Fields = Record<string, never>
/** The step that a record belongs to. The first step begins without a record of its own. */
function stepOf(state: State, fields: Fields): Step {
  if (state.steps.length === 0) state.steps.push(emptyStep(0, 'answer'))
  return state.steps[fields['step']!]!
}
const callOf = (state: State, fields: Fields): CallState | undefined =>
  state.steps[fields['step']!]?.calls.find(({ call }) => call.id === fields['call_id'])

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
