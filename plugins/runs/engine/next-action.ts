// Decides what a run does next, from its state alone: think, call tools, note something, or end. It
// uses no clock and no port, so the same state always gives the same action.
import type { NewEvent } from '#ports/eventlog.ts'
import { detailCharsMax, reportFailure, stepsIn } from '../prompt/planning.ts'
import { event, stepBegins, type Purpose, type Terminal } from '../journal/records.ts'
import { currentStep, type State, type Step } from '../journal/state.ts'

export type Bounds = {
  /** Model calls of a run. */
  readonly stepsMax: number
  /** Model calls for one answer, or for one step of a plan, that may ask for tools. */
  readonly roundsMax: number
  readonly planStepsMax: number
  readonly replansMax: number
}
export type Action =
  | {
      readonly do: 'think'
      readonly step: number
      readonly purpose: Purpose
      /** The model may ask for tools. */
      readonly tools: boolean
      /** What is written before the call. */
      readonly before: readonly NewEvent[]
    }
  | { readonly do: 'call'; readonly step: Step }
  | { readonly do: 'note'; readonly records: readonly NewEvent[] }
  | { readonly do: 'end'; readonly terminal: Terminal }

const end = (terminal: Terminal): Action => ({ do: 'end', terminal })
const planStep = (index: number, status: string, detail = ''): NewEvent =>
  event('plan_step', { index, status, detail: detail.slice(0, detailCharsMax) })

/** Counts the model calls in a row, for the same purpose, that asked for tools. */
function roundsOf({ steps }: State, purpose: Purpose): number {
  let rounds = 0
  for (
    let at = steps.length - 1;
    at >= 0 && steps[at]!.purpose === purpose && steps[at]!.calls.length > 0;
    at--
  )
    rounds++
  return rounds
}

function begin(
  state: State,
  purpose: Purpose,
  { stepsMax, roundsMax }: Bounds,
  ...noted: NewEvent[]
): Action {
  const step = state.steps.length
  // The first model call of a run that answers at once needs no record of its own.
  const before =
    step === 0 && purpose === 'answer' ? noted : [...noted, stepBegins({ step, purpose })]
  // After a plan, the steps have used the tools. The answer only tells of their results.
  const mayCall = purpose === 'work' || (purpose === 'answer' && state.plan.length === 0)
  return {
    do: 'think',
    step,
    purpose,
    before,
    tools: mayCall && roundsOf(state, purpose) + 1 < roundsMax && step + 1 < stepsMax,
  }
}

function afterAnswer({ text, accepted, calls }: Step): Action {
  if (accepted!.finish === 'filtered' && text === '' && calls.length === 0)
    return end({
      type: 'error',
      code: 'MODEL_REFUSED',
      detail: 'The model provider refused the request: its content filter withheld the answer.',
    })
  return end({ type: 'done', status: 'done' })
}

/** The next step of the plan, a new plan, or the answer. */
function afterPlanning(state: State, bounds: Bounds): Action {
  const pending = state.plan.findIndex(({ status }) => status === 'pending')
  const room = state.steps.length + 2 < bounds.stepsMax
  if (state.planFailed && state.revision <= bounds.replansMax && room)
    return begin(state, 'plan', bounds)
  if (pending >= 0 && !state.planFailed && room)
    return begin(state, 'work', bounds, planStep(pending, 'running'))
  const skipped = state.plan.flatMap(({ status }, index) =>
    status === 'pending' ? [planStep(index, 'skipped')] : [],
  )
  return begin(state, 'answer', bounds, ...skipped)
}

function afterWork(state: State, step: Step, bounds: Bounds): Action {
  const index = state.plan.findIndex(({ status }) => status === 'running')
  if (index < 0) return afterPlanning(state, bounds)
  const failed =
    failureOf(step) ??
    (step.text.trim() === ''
      ? 'The model gave no result.'
      : step.accepted!.finish === 'filtered'
        ? 'The content filter of the model withheld the result.'
        : undefined)
  return {
    do: 'note',
    records: [
      failed === undefined
        ? planStep(index, 'done', step.text.trim())
        : planStep(index, 'failed', failed),
    ],
  }
}

/** The reason that the model gave for not carrying out a step. */
function failureOf({ purpose, calls }: Step): string | undefined {
  const report =
    purpose === 'work' ? calls.find(({ call }) => call.name === reportFailure.name) : undefined
  return (
    report &&
    String((report.call.arguments as { reason?: unknown } | null)?.reason ?? 'No reason was given.')
  )
}

export function nextAction(
  state: State,
  { plan }: { readonly plan: boolean },
  bounds: Bounds,
): Action {
  const step = currentStep(state)
  if (!step) return begin(state, plan ? 'plan' : 'answer', bounds)
  if (!step.accepted)
    return {
      ...(begin({ ...state, steps: state.steps.slice(0, -1) }, step.purpose, bounds) as Extract<
        Action,
        { do: 'think' }
      >),
      before: [],
    }
  // At its last call the model is offered no tools. Calls that it makes all the same are ignored.
  const spent =
    step.index + 1 >= bounds.stepsMax || roundsOf(state, step.purpose) >= bounds.roundsMax
  if (failureOf(step) === undefined && !spent) {
    if (step.calls.some(({ outcome }) => outcome === undefined)) return { do: 'call', step }
    if (step.calls.length > 0) return begin(state, step.purpose, bounds)
  }
  if (step.purpose === 'answer') return afterAnswer(step)
  if (step.purpose === 'work') return afterWork(state, step, bounds)
  if (state.plannedIn === step.index) return afterPlanning(state, bounds)
  const kept = state.plan.filter(({ status }) => status === 'done' || status === 'failed').length
  return {
    do: 'note',
    records: [
      event('plan', {
        revision: state.revision + 1,
        from: step.index,
        steps: stepsIn(step.text, bounds.planStepsMax).map((title, i) => ({
          index: kept + i,
          title,
        })),
      }),
    ],
  }
}
