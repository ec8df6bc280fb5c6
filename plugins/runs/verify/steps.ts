// What must hold of the steps of a run. Each model call is accepted once, in one version. Each of
// its tool calls goes from intent to outcome once.
import type { LoggedEvent } from '#ports/eventlog.ts'

/** One sentence for each thing that does not hold. */
export type Violations = string[]
export type Fields = Record<string, unknown>
type Call = { begun: boolean; asked: boolean; ended: boolean }
/** What the log has said of a step so far. `text`: characters that were shown. */
type Step = {
  readonly number: number
  attempt: number
  text: number
  accepted: boolean
  calls: Map<string, Call>
}
/** One record of a step. `at` names it in a sentence. */
type StepRecord = {
  readonly at: string
  readonly type: string
  readonly fields: Fields
  readonly step: Step
  /** The record that stands directly before it. */
  readonly before: LoggedEvent | undefined
}

const shownTypes = new Set(['token', 'reasoning'])
const writesAnswer = (type: string) =>
  shownTypes.has(type) || type === 'call@1' || type === 'open@1'

/** The records of a model call: what it shows, what is taken back, and what is accepted. */
function verifyAnswer({ at, type, fields, step, before }: StepRecord, bad: Violations): void {
  const attempt = fields['attempt'] as number | undefined
  const keep = fields['keep'] as number
  const refuseAccepted = () => {
    if (step.accepted) bad.push(`${at}: step ${step.number} was accepted before`)
  }
  if (writesAnswer(type)) {
    refuseAccepted()
    if (attempt !== step.attempt)
      bad.push(`${at} is of attempt ${attempt}, the step stands at ${step.attempt}`)
  }
  if (type === 'token') step.text += (fields['text'] as string).length
  if (type === 'superseded') {
    if (keep > step.text) bad.push(`${at} keeps more than was shown`)
    if (attempt !== step.attempt)
      bad.push(`${at} supersedes attempt ${attempt}, the step stands at ${step.attempt}`)
  }
  if (type === 'attempt@1') {
    if (attempt !== step.attempt + 1) bad.push(`${at}: attempt ${attempt} follows ${step.attempt}`)
    refuseAccepted()
    if (step.text > keep && before?.type !== 'superseded')
      bad.push(`${at} takes back what was shown without saying so`)
    step.attempt = attempt!
    step.text = Math.min(step.text, keep)
    if (fields['plan'] !== 'resume') step.calls = new Map()
  }
  if (type === 'call@1')
    step.calls.set((fields['call'] as { id: string }).id, {
      begun: false,
      asked: false,
      ended: false,
    })
  if (type === 'thought@1') {
    refuseAccepted()
    step.accepted = true
  }
}

/** The records of a tool call. `questions`: whether each has its answer. */
function verifyCall(
  { at, type, fields, step }: StepRecord,
  questions: Map<string, boolean>,
  bad: Violations,
): void {
  const id = fields['call_id'] as string
  const question = fields['question_id'] as string
  const call = step.calls.get(id)
  if (!call) bad.push(`${at}: the model never made the call ${id}`)
  else if (!step.accepted) bad.push(`${at}: the answer that calls was not accepted yet`)
  else if (call.ended && type !== 'artifact') bad.push(`${at}: the call ${id} had its result`)
  else if (type === 'tool_call') {
    if (call.begun) bad.push(`${at}: the call ${id} had begun`)
    call.begun = true
  } else if (type === 'tool_result') call.ended = true
  else if (type === 'choice_answer') {
    if (!questions.has(question)) bad.push(`${at}: nobody asked`)
    if (questions.get(question)) bad.push(`${at}: the question was answered before`)
    questions.set(question, true)
  } else if (question) {
    if (call.asked) bad.push(`${at}: the call ${id} had asked`)
    call.asked = true
    questions.set(question, false)
  }
}

/** A run that is done has accepted every step, and has a result for every call that began. */
function verifyDone(steps: Iterable<Step>, bad: Violations): void {
  for (const { number, accepted, calls } of steps) {
    if (!accepted) bad.push(`it is done, but step ${number} was never accepted`)
    for (const [id, { begun, ended }] of calls)
      if (begun && !ended) bad.push(`it is done, but the call ${id} has no result`)
  }
}

export function verifySteps(log: readonly LoggedEvent[], bad: Violations): void {
  const steps = new Map<number, Step>()
  const questions = new Map<string, boolean>()
  const stepOf = (number: number): Step => {
    const known = steps.get(number)
    if (known) return known
    const made: Step = { number, attempt: 1, text: 0, accepted: false, calls: new Map() }
    steps.set(number, made)
    return made
  }
  for (const [i, { seq, type, data }] of log.entries()) {
    const fields = data as Fields
    const number = fields['step'] as number | undefined
    if (number === undefined) continue
    const at = `${type} at ${seq}`
    const before = log[i - 1]?.seq === seq - 1 ? log[i - 1] : undefined
    const record = { at, type, fields, step: stepOf(number), before }
    verifyAnswer(record, bad)
    if (writesAnswer(type) && steps.has(number + 1))
      bad.push(`${at}: the run had gone on to the next step`)
    if (fields['call_id']) verifyCall(record, questions, bad)
  }
  const last = log.at(-1)
  if (last?.type === 'done' && (last.data as Fields)['status'] === 'done')
    verifyDone(steps.values(), bad)
}
