// The tools `ask_user` and `ask_quiz`: they answer with a question, and the user's answer becomes
// the call's result.
import { Type as t, type Static } from 'typebox'
import { fault } from '#kernel'
import type { Choice, Tool } from '../runs/api.ts'

const optionsMax = 26
const Label = t.String({ minLength: 1, maxLength: 300 })
const optionsOf = (minItems: number, description: string) =>
  t.Array(Label, { minItems, maxItems: optionsMax, uniqueItems: true, description })

const Ask = t.Object(
  {
    question: t.String({
      minLength: 1,
      maxLength: 2000,
      description: 'One question, in the language of the conversation.',
    }),
    options: t.Optional(
      optionsOf(1, 'Answers to choose from; none for a question that is answered in words.'),
    ),
    multiple: t.Optional(
      t.Boolean({ description: 'True when several options may be chosen; default false.' }),
    ),
    free: t.Optional(
      t.Boolean({
        description:
          'True when the user may answer in words of their own; default: where there are ' +
          'no options.',
      }),
    ),
  },
  { additionalProperties: false },
)
const Quiz = t.Object(
  {
    title: t.String({ minLength: 1, maxLength: 200 }),
    items: t.Array(
      t.Object(
        {
          question: t.String({ minLength: 1, maxLength: 2000 }),
          options: optionsOf(2, 'Answers to choose from.'),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 50 },
    ),
  },
  { additionalProperties: false },
)

/** a, b, c… in the order given: the same options get the same ids. */
const choicesOf = (labels: readonly string[]): Choice[] =>
  labels.map((label, i) => ({ id: String.fromCharCode(0x61 + i), label }))

export const askUser: Tool = {
  name: 'ask_user',
  effect: 'none',
  parameters: Ask,
  description:
    'Asks the user one question and waits for the answer. Use it when the request is ' +
    'ambiguous and a wrong guess would waste work.',
  run(args) {
    const {
      question,
      options = [],
      multiple = false,
      free = options.length === 0,
    } = args as Static<typeof Ask>
    if (options.length === 0 && !free)
      throw fault('INVALID_FIELD', {
        field: 'free',
        why: 'must be true where there are no options',
      })
    return { ask: { kind: 'user_choice', question, options: choicesOf(options), multiple, free } }
  },
}

export const askQuiz: Tool = {
  name: 'ask_quiz',
  effect: 'none',
  parameters: Quiz,
  description:
    'Puts several questions with options to the user at once, as a quiz or a form, and ' +
    'waits for the answers.',
  run(args) {
    const { title, items } = args as Static<typeof Quiz>
    return {
      ask: {
        kind: 'quiz',
        title,
        items: items.map(({ question, options }, i) => ({
          id: String(i + 1),
          question,
          options: choicesOf(options),
        })),
      },
    }
  },
}
