// Questions to the user: which answers are valid, and what the model is told of them.
import { fault, type Json } from '#kernel'
import type { Choice, Question } from '../api.ts'
import type { Answered, Asked, Outcome } from '../journal/state.ts'

/** Characters of an answer in the user's own words. */
export const freeCharsMax = 10_000

const wrong = (why: string) => fault('INVALID_FIELD', { field: 'answer', why })
const idsOf = (options: readonly Choice[]) => options.map(({ id }) => id)
const labelOf = (options: readonly Choice[], id: string) =>
  options.find(option => option.id === id)?.label ?? id

function checkChoice(
  { options, multiple, free }: Extract<Question, { kind: 'user_choice' }>,
  answer: Json,
): void {
  const chosen = Array.isArray(answer) ? answer : [answer]
  if (Array.isArray(answer) && !multiple) throw wrong('one choice is asked for')
  if (chosen.length === 0 || !chosen.every(one => typeof one === 'string' && one !== ''))
    throw wrong(multiple ? 'a list of option ids' : 'an option id')
  if (new Set(chosen).size !== chosen.length) throw wrong('names an option twice')
  for (const one of chosen as string[]) {
    if (one.length > freeCharsMax) throw wrong(`longer than ${freeCharsMax} characters`)
    if (!free && !idsOf(options).includes(one))
      throw wrong(`must be one of ${idsOf(options).join(', ')}`)
  }
}

function checkQuiz({ items }: Extract<Question, { kind: 'quiz' }>, answer: Json): void {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer))
    throw wrong('an object: question id → option id')
  for (const id of Object.keys(answer))
    if (!items.some(item => item.id === id))
      throw wrong(`there is no question ${JSON.stringify(id.slice(0, 40))}`)
  for (const { id, options } of items)
    if (!idsOf(options).includes(String(answer[id])))
      throw wrong(`${id} must be one of ${idsOf(options).join(', ')}`)
}

/**
 * Accepts a label in place of its option's id. The label must not be an id itself, and only one
 * option may have it.
 */
function idFor(options: readonly Choice[], given: Json): Json {
  if (typeof given !== 'string' || idsOf(options).includes(given)) return given
  const [named, another] = options.filter(({ label }) => label === given)
  return named && !another ? named.id : given
}

/**
 * Returns the answer as it is stored, by ids. INVALID_FIELD (`answer`) says what would be valid.
 */
export function answerFor({ kind, data }: Asked, answer: Json): Json {
  if (kind === 'approval') {
    if (typeof answer !== 'boolean') throw wrong('true or false')
    return answer
  }
  if (kind === 'quiz') {
    const quiz = data as unknown as Extract<Question, { kind: 'quiz' }>
    const optionsOf = (id: string) => quiz.items.find(item => item.id === id)?.options ?? []
    const isByItem = typeof answer === 'object' && answer !== null && !Array.isArray(answer)
    const meant = isByItem
      ? Object.fromEntries(
          Object.entries(answer).map(([id, one]) => [id, idFor(optionsOf(id), one)]),
        )
      : answer
    checkQuiz(quiz, meant)
    return meant
  }
  const choice = data as unknown as Extract<Question, { kind: 'user_choice' }>
  const meant = Array.isArray(answer)
    ? answer.map(one => idFor(choice.options, one))
    : idFor(choice.options, answer)
  checkChoice(choice, meant)
  return meant
}

/**
 * The call's result, once its question is answered. Undefined: the user approved, and the body may
 * run.
 */
export function outcomeOf(
  { kind, data }: Asked,
  { status, answer }: Answered,
): Outcome | undefined {
  if (status === 'expired')
    return { status: 'declined', content: 'The user did not answer in time.' }
  if (kind === 'approval')
    return answer === true
      ? undefined
      : {
          status: 'declined',
          content:
            'The user declined this action. Do not try it again unless the user asks for it.',
        }
  if (kind === 'quiz') {
    const { items } = data as unknown as Extract<Question, { kind: 'quiz' }>
    return {
      status: 'ok',
      content: items
        .map(
          ({ id, question, options: choices }) =>
            `${question} → ${labelOf(choices, String((answer as Record<string, Json>)[id]))}`,
        )
        .join('\n'),
    }
  }
  const { options } = data as unknown as Extract<Question, { kind: 'user_choice' }>
  const labels = (Array.isArray(answer) ? answer : [answer]).map(one =>
    labelOf(options, String(one)),
  )
  return { status: 'ok', content: `The user answered: ${labels.join('; ')}` }
}
