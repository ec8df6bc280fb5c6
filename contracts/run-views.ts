// Runs for clients that ask now and then instead of following events.
import { Type as t } from 'typebox'
import { contract, named, page, Paging, ref, tagged, Timestamp } from './contract.ts'
import { Artifact } from './files.ts'
import { RunStatus } from './runs.ts'

export const RunSummary = named(
  'RunSummary',
  t.Object({
    run_id: t.String({ format: 'uuid' }),
    session_id: t.String({ format: 'uuid' }),
    status: RunStatus,
    app_name: t.String({ example: 'main', description: 'The agent.' }),
    model: t.String({ example: 'scripted' }),
    queue_seq: t.Integer({ minimum: 0, description: 'Its place in the queue; 0 outside it.' }),
    created_at: Timestamp,
    ended_at: t.Union([Timestamp, t.Null()]),
    credits: t.Union([t.Integer(), t.Null()], {
      example: 12,
      description: 'What it cost; null until it has ended.',
    }),
  }),
)
/** A run as it stands. Its questions are those of the events `user_choice`, `quiz`, `approval`. */
export const RunView = named(
  'Run',
  t.Object({
    ...RunSummary.properties,
    answer: t.String({
      example: 'The second offer is cheaper.',
      description: 'What `token` has shown so far; the whole answer at the end.',
    }),
    usage: t.Union(
      [
        t.Object({
          input_tokens: t.Integer({ minimum: 0, example: 512 }),
          output_tokens: t.Integer({ minimum: 0, example: 48 }),
          total_tokens: t.Integer({ minimum: 0, example: 560 }),
        }),
        t.Null(),
      ],
      { description: 'So far. Null for a copy in a fork, and where it is not known any more.' },
    ),
    error: t.Union([t.Object({ code: t.String(), detail: t.String() }), t.Null()], {
      example: null,
      description: 'Why it failed, as the event `error` says it.',
    }),
    questions: t.Array(
      t.Object({
        type: t.Union([t.Literal('user_choice'), t.Literal('quiz'), t.Literal('approval')]),
        data: t.Unknown({
          example: { question_id: '0193a6f0-8d9e-7f0a-9b1c-2d3e4f5a6b78', question: 'Which one?' },
          description: 'That of the event: question_id, expires_at and what is asked.',
        }),
      }),
      { description: 'Those that wait for POST /runs/{run_id}/respond.' },
    ),
    artifacts: t.Array(Artifact, { description: 'What it made, the oldest first, at most 200.' }),
  }),
)
export const RunList = t.Object({
  ...Paging.properties,
  status: t.Optional(RunStatus),
  app_name: t.Optional(t.String({ maxLength: 80, description: 'The agent.' })),
  session_id: t.Optional({ ...ref('session'), description: 'The conversation.' }),
  from: t.Optional({
    ...Timestamp,
    description: 'Started at this time or later, as 2026-01-31T00:00:00Z.',
  }),
  to: t.Optional({ ...Timestamp, description: 'Started before this time.' }),
})

export const runViews = tagged(
  'Runs',
  contract({
    'GET /runs': {
      id: 'listRuns',
      summary: 'List your runs',
      description:
        'The conversation with the latest activity first, and within it the newest run. A page ' +
        'may be shorter than `limit`, even empty, while `next_cursor` says that there may be ' +
        'more. Copies in a fork are not listed; GET /sessions/{id} has them. Give a cursor ' +
        'with the same filters. A conversation that goes on while you page moves to the front.',
      query: RunList,
      reply: page(RunSummary),
    },
    'GET /runs/{run_id}': {
      id: 'getRun',
      summary: 'Read a run as it stands',
      description:
        'For clients that ask now and then, every second or slower, until the status is `done`, ' +
        '`failed` or `cancelled`. While it is `waiting`, answer its `questions`. Whoever follows ' +
        'GET /runs/{run_id}/events knows all of this already.',
      params: { run_id: ref('run') },
      reply: RunView,
    },
  }),
)
