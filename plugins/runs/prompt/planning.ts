// Plan mode: the model writes steps, and the engine runs them one after another. After a failed
// step the model plans anew, or the answer reports the failure.
import type { Message, ToolSpec } from '#ports/models.ts'
import type { PlanStep } from '../journal/state.ts'

const titleCharsMax = 300
/** Characters of a step's result that later steps and readers see. */
export const detailCharsMax = 4000

const number = /^(?:\*\*)?\d{1,3}[.)](?:\*\*)?\s/
/**
 * Returns the title in a numbered line. Each line is matched by itself: one pattern for the whole
 * text would start again at each of its empty lines.
 */
function titleIn(line: string): string[] {
  const text = line.trim()
  const [mark] = number.exec(text.slice(0, 12)) ?? []
  return mark === undefined ? [] : [text.slice(mark.length).trim()]
}

/** The numbered lines of a plan; a text without any is one step. */
export function stepsIn(text: string, max: number): string[] {
  const numbered = text.split('\n').flatMap(titleIn).slice(0, max)
  const steps = numbered.length > 0 ? numbered : [text.trim().split('\n', 1)[0]!.trim()]
  return steps
    .filter(Boolean)
    .slice(0, max)
    .map(title => (title.length > titleCharsMax ? `${title.slice(0, titleCharsMax - 1)}…` : title))
}

/**
 * With this call the model says that a step cannot be done. The engine handles it; no tool runs.
 */
export const reportFailure: ToolSpec = {
  name: 'report_failure',
  description: 'Say that this step of the plan cannot be carried out, and why.',
  parameters: {
    type: 'object',
    properties: { reason: { type: 'string', description: 'One sentence.' } },
    required: ['reason'],
  },
}

const formatPlan = (plan: readonly PlanStep[]): string =>
  plan
    .map(
      ({ title, status, detail }, i) =>
        `${i + 1}. ${title} (${status})${detail ? `: ${detail}` : ''}`,
    )
    .join('\n')

export const planInstruction = (max: number) =>
  `Do not answer yet. Write a numbered plan: one short step a line, at most ${max} steps, ` +
  'nothing else.'
export const replan = (plan: readonly PlanStep[]): Message => ({
  role: 'user',
  content:
    'This was done so far, and the last step ' +
    `failed:\n${formatPlan(plan.filter(({ status }) => status !== 'pending'))}\nWrite a numbered ` +
    'plan of what is left to do, in another way than the one that failed.',
})

export const workInstruction =
  'Carry out one step of a plan. Answer with the result of this step and nothing else. If it ' +
  `cannot be done, call ${reportFailure.name}.`
export function workOn(plan: readonly PlanStep[], index: number): Message {
  const before = plan.slice(0, index)
  return {
    role: 'user',
    content:
      `${before.length > 0 ? `Results so far:\n${formatPlan(before)}\n\n` : ''}Carry out step ` +
      `${index + 1} of ${plan.length}: ${plan[index]!.title}`,
  }
}
export const answerFrom = (plan: readonly PlanStep[]): Message => ({
  role: 'user',
  content:
    `The plan was carried out:\n${formatPlan(plan)}\n\nNow answer the request from these results` +
    '. Say what failed or was left out.',
})
