// Every type of stream event, with the schema of its data. Types are only ever added, and clients
// skip types that they do not know.
import { Type as t, type Static } from 'typebox'

const step = t.Integer({ minimum: 0, description: 'Which model call of the run, from 0.' })
const attempt = t.Integer({ minimum: 1, description: 'Which try of that call, from 1.' })

const call = {
  step,
  call_id: t.String({ description: "Unique within the run's step." }),
  name: t.String({ description: 'Of the tool.' }),
}
const question = {
  question_id: t.String({ format: 'uuid', description: 'For POST /runs/{run_id}/respond.' }),
  expires_at: t.String({ format: 'date-time' }),
}
const Choice = t.Object({ id: t.String(), label: t.String() })

export const events = {
  token: t.Object(
    {
      text: t.String({
        description:
          'A fragment of the answer; all fragments in a row are the answer. What goes on ' +
          'after a tool call is set apart by a blank line.',
      }),
      step,
      attempt,
    },
    { description: 'A fragment of the answer.' },
  ),
  reasoning: t.Object(
    {
      text: t.String({ description: 'A fragment of the deliberation before the answer.' }),
      step,
      attempt,
    },
    { description: 'A fragment of what the model thinks before it answers.' },
  ),
  superseded: t.Object(
    {
      step,
      attempt,
      keep: t.Integer({
        minimum: 0,
        description:
          "How many characters (UTF-16 code units) of this step's text stay; what follows " +
          'comes after them. Of an answer all of them, always: what `token` has shown stays. ' +
          'A plan, or the work on it, may begin again (0). Reasoning of the attempt is void.',
      }),
      reason: t.Union([t.Literal('interrupted'), t.Literal('failed')], {
        description:
          '`interrupted`: the process that drove the run ended. `failed`: the model provider did.',
      }),
    },
    { description: 'A model call broke off and goes on: what of its text stays.' },
  ),
  tool_call: t.Object(
    {
      ...call,
      arguments: t.Unknown({
        description:
          'As the tool receives them; where it does not, as the model gave them, or {} where ' +
          'they were too large.',
      }),
    },
    { description: 'The model calls a tool. One `tool_result` of the same call follows.' },
  ),
  tool_result: t.Object(
    {
      ...call,
      status: t.Union(
        [t.Literal('ok'), t.Literal('failed'), t.Literal('unknown'), t.Literal('declined')],
        {
          description:
            '`unknown`: the process ended in the middle of the call, and nobody can tell ' +
            'whether it was carried out; it was not repeated. `declined`: the user said no, ' +
            'or did not answer in time.',
        },
      ),
      content: t.String({ description: 'What the model reads.' }),
      truncated: t.Boolean(),
      artifact_id: t.Union([t.String({ format: 'uuid' }), t.Null()], {
        description: 'The whole of a result that was too long.',
      }),
    },
    { description: 'What a tool answered.' },
  ),
  artifact: t.Object(
    {
      artifact_id: t.String({ format: 'uuid' }),
      filename: t.String(),
      step,
      call_id: t.String(),
    },
    { description: 'A file was made; its content is at GET /artifacts/{id}.' },
  ),
  user_choice: t.Object(
    {
      ...call,
      ...question,
      question: t.String(),
      options: t.Array(Choice),
      multiple: t.Boolean({ description: 'The answer is a list of option ids.' }),
      free: t.Boolean({ description: "A text of the user's own is an answer too." }),
    },
    { description: 'A question with options. The run waits for POST /runs/{run_id}/respond.' },
  ),
  quiz: t.Object(
    {
      ...call,
      ...question,
      title: t.String(),
      items: t.Array(t.Object({ id: t.String(), question: t.String(), options: t.Array(Choice) }), {
        description: 'The answer is an object: question id → option id.',
      }),
    },
    { description: 'Several questions at once. The run waits for POST /runs/{run_id}/respond.' },
  ),
  approval: t.Object(
    { ...call, ...question, action: t.String(), arguments: t.Unknown() },
    {
      description:
        'An action waits for approval by POST /runs/{run_id}/respond. The answer is true or false.',
    },
  ),
  choice_answer: t.Object(
    {
      question_id: t.String({ format: 'uuid' }),
      step,
      call_id: t.String(),
      status: t.Union([t.Literal('answered'), t.Literal('expired')]),
      answer: t.Unknown(),
    },
    { description: 'A question was answered, or its time ran out.' },
  ),
  plan: t.Object(
    {
      revision: t.Integer({
        minimum: 1,
        description: 'From 1; a later plan replaces the steps that were not begun.',
      }),
      from: t.Integer({ minimum: 0, description: 'The model call that wrote it.' }),
      steps: t.Array(t.Object({ index: t.Integer({ minimum: 0 }), title: t.String() })),
    },
    { description: 'The plan of a run that was started with `plan`.' },
  ),
  plan_step: t.Object(
    {
      index: t.Integer({ minimum: 0 }),
      status: t.Union([
        t.Literal('running'),
        t.Literal('done'),
        t.Literal('failed'),
        t.Literal('skipped'),
      ]),
      detail: t.String({ description: 'The result, or why there is none.' }),
    },
    { description: 'How a step of the plan stands.' },
  ),
  context_cut: t.Object(
    {
      dropped_messages: t.Integer({
        minimum: 0,
        description: 'Of the conversation before this run, the oldest first.',
      }),
      shortened_results: t.Integer({
        minimum: 0,
        description: 'Tool results of this run that gave way.',
      }),
      dropped_attachment_characters: t.Integer({ minimum: 0 }),
    },
    { description: 'What the model was not given, because its window is too small for all.' },
  ),
  usage: t.Object(
    {
      input_tokens: t.Integer({ minimum: 0 }),
      output_tokens: t.Integer({ minimum: 0 }),
      total_tokens: t.Integer({ minimum: 0 }),
      credits: t.Integer({ minimum: 0, description: 'Whole credits charged for the run.' }),
      model: t.String(),
      model_calls: t.Integer({
        minimum: 0,
        description: 'Superseded attempts are not counted, and not charged.',
      }),
    },
    { description: 'What the run used and cost. It comes right before the end.' },
  ),
  done: t.Object(
    {
      status: t.Union([t.Literal('done'), t.Literal('cancelled')]),
      session_id: t.String({ format: 'uuid' }),
    },
    { description: 'The end of a run that did not fail. Nothing follows.' },
  ),
  error: t.Object(
    { code: t.String(), detail: t.String() },
    { description: 'The end of a run that failed. Nothing follows.' },
  ),
  gone: t.Object(
    {
      first: t.Integer({
        description:
          'The first seq that is still kept: reload the session, then read on from here.',
      }),
    },
    { description: 'Events after your cursor are no longer kept.' },
  ),
} as const

export type EventData = { [K in keyof typeof events]: Static<(typeof events)[K]> }
/** Each run's stream ends with exactly one of these. */
export const terminalTypes = ['done', 'error'] as const
