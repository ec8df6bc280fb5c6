// Records of a run's stream, written by hand, and the state that they fold to.
import type { NewEvent } from '#ports/eventlog.ts'
import { foldOne } from '../../../plugins/runs/journal/fold.ts'
import {
  attemptBegins,
  checkpointed,
  event,
  modelCallAccepted,
  stepBegins,
  toolWhole,
  type Plan,
} from '../../../plugins/runs/journal/records.ts'
import { emptyState, type State } from '../../../plugins/runs/journal/state.ts'

export const folded = (...records: readonly NewEvent[]): State =>
  records.reduce((state, record, i) => foldOne(state, { ...record, seq: i + 1 }), emptyState())
export const token = (text: string, attempt = 1, step = 0) =>
  event('token', { text, step, attempt })
export const thinking = (text: string, step = 0) => event('reasoning', { text, step, attempt: 1 })
export const whole = (id: string, name = 'known', step = 0) =>
  toolWhole({ step, attempt: 1, call: { id, name, arguments: {} } })
export const point = (at: number) => checkpointed({ step: 0, attempt: 1, response: 'r', at })
export const again = (plan: Plan, keep: number, attempt = 2) =>
  attemptBegins({ step: 0, attempt, plan, keep, lost: { inputTokens: 1, outputTokens: 1 } })
export const callsAccepted = (step = 0) =>
  modelCallAccepted({
    step,
    attempt: 1,
    finish: 'tool_calls',
    input_tokens: 1,
    output_tokens: 1,
  })
/** An answer that called a tool; the next model call begins. */
export const afterCall = (said = 'I look.'): readonly NewEvent[] => [
  token(said),
  whole('c1'),
  callsAccepted(),
  stepBegins({ step: 1, purpose: 'answer' }),
]
