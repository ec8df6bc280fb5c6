import { Type as t, type Static } from 'typebox'
import { contract, filled, named, ref, tagged } from './contract.ts'

/**
 * The bound of the wire; RUNS_MESSAGE_BYTES_MAX and the model's window are what counts below it.
 */
export const messageCharsMax = 1_000_000

export const RunStart = named(
  'RunStart',
  t.Object(
    {
      message: t.String({
        example: 'Compare the two offers that I attached.',
        minLength: 1,
        maxLength: messageCharsMax,
        description: 'The request to the agent.',
      }),
      app_name: filled(
        t.String({
          default: 'main',
          pattern: '^[a-zA-Z0-9_-]{1,80}$',
          description: 'A catalogue key, or custom_<id>.',
        }),
      ),
      session_id: t.Optional({
        ...ref('session'),
        description: 'Continue this conversation; omit to open one.',
      }),
      attachments: t.Optional(t.Array(ref('upload'), { maxItems: 50, description: 'Upload ids.' })),
      kb_ids: t.Optional(
        t.Array(ref('kb'), {
          maxItems: 20,
          description: 'Knowledge bases that the agent may search, where a plugin offers them.',
        }),
      ),
      kb_enhance: filled(
        t.Boolean({ default: false, description: 'Means something with `kb_ids` only.' }),
      ),
      plan: filled(
        t.Boolean({ default: false, description: 'Write a plan first, then execute it.' }),
      ),
      model: t.Optional(
        t.String({
          minLength: 1,
          maxLength: 200,
          description: 'A key of GET /models; else the default.',
        }),
      ),
      reasoning: filled(
        t.Boolean({ default: false, description: 'Longer deliberation before answering.' }),
      ),
      data_workspace_id: t.Optional({
        ...ref('workspace'),
        description: 'A workspace of data, where a plugin offers them.',
      }),
      client_tz: filled(
        t.String({
          default: 'UTC',
          maxLength: 64,
          description: 'IANA time zone; the agent reasons in this local time.',
        }),
      ),
      idempotency_key: t.Optional(
        t.String({
          minLength: 1,
          maxLength: 200,
          description: 'The same key answers the first run again. Also the Idempotency-Key header.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
)
export type RunStart = Static<typeof RunStart>

export const PlacedStatus = t.Union([
  t.Literal('running'),
  t.Literal('queued'),
  t.Literal('blocked'),
])
export const RunStatus = named(
  'RunStatus',
  t.Union(
    [
      ...PlacedStatus.anyOf,
      t.Literal('waiting'),
      t.Literal('done'),
      t.Literal('failed'),
      t.Literal('cancelled'),
    ],
    {
      description:
        '`running`; `queued`: behind another run of its conversation; `blocked`: behind one ' +
        'that failed, until the queue is resumed; `waiting`: for an answer of its user. ' +
        '`done`, `failed` and `cancelled` are final.',
    },
  ),
)

export const RunStarted = named(
  'RunStarted',
  t.Object({
    run_id: t.String({ format: 'uuid' }),
    session_id: t.String({ format: 'uuid' }),
    cursor: t.Integer({ minimum: 0, description: 'Read the events after this seq.' }),
    resumed: t.Boolean({ description: 'True when the idempotency key matched an earlier run.' }),
    status: {
      ...RunStatus,
      description:
        '`running`, `queued` or `blocked`; of a run that an idempotency key matched, as it ' +
        'stands now.',
    },
    queue_seq: t.Integer({
      minimum: 0,
      description: 'Place in the session queue; 0 when not queued.',
    }),
  }),
)
export type RunStarted = Static<typeof RunStarted>

const start = {
  body: RunStart,
  bodyMaxBytes: 8 << 20,
  reply: RunStarted,
  limit: { name: 'runs', by: 'user' },
  headers: {
    'idempotency-key': t.Optional(
      t.String({ maxLength: 200, description: 'Same as the field idempotency_key.' }),
    ),
  },
  faults: [
    'INSUFFICIENT_CREDITS',
    'NOT_FOUND',
    'IDEMPOTENCY_MISMATCH',
    'QUEUE_FULL',
    'QUOTA_REACHED',
    'CONFLICT',
    'FORBIDDEN',
    'SHEDDING',
  ],
} as const

export const runs = tagged(
  'Runs',
  contract({
    'POST /chat': {
      id: 'startRun',
      ...start,
      summary: 'Start a durable run',
      description:
        'Answers at once. Read the run at GET /runs/{run_id}/events; a disconnect stops nothing.',
    },
    'POST /tasks': {
      id: 'startTask',
      ...start,
      summary: 'Start a durable run in the background',
      description: 'The same as POST /chat, for callers that will not hold a stream.',
    },
    'GET /runs/{run_id}/events': {
      id: 'followRun',
      summary: 'Read and follow the events of a run',
      reply: 'sse',
      params: { run_id: ref('run') },
      description:
        'Server-Sent Events. `id` is the seq; reconnect with Last-Event-ID or ?after= and ' +
        'read exactly what follows. `done` or `error` comes last, once, and the stream ends; ' +
        'asked for again with nothing left it is 204. Numbers may have gaps. The stream also ' +
        'ends when the access token does: come back with a new one and the last id.',
      query: t.Object({
        after: t.Optional(
          t.String({
            maxLength: 20,
            description: 'The last seq that you have; Last-Event-ID beats it.',
          }),
        ),
      }),
      headers: {
        'last-event-id': t.Optional(
          t.String({ maxLength: 20, description: 'The last seq that you have.' }),
        ),
      },
    },
    'POST /runs/{run_id}/respond': {
      id: 'answerQuestion',
      summary: 'Answer a question of a run',
      params: { run_id: ref('run') },
      faults: ['QUESTION_CLOSED'],
      description:
        'For the events user_choice, quiz and approval. Each question is answered once, in ' +
        'any order; a second or late answer is a 409. The stream goes on with choice_answer.',
      body: t.Object(
        {
          question_id: t.Optional(
            t.String({
              format: 'uuid',
              description: 'Of the event; may be left out where one question is open.',
            }),
          ),
          answer: t.Union(
            [
              t.String({ maxLength: 10_000, example: 'option-1' }),
              t.Boolean(),
              t.Array(t.String({ maxLength: 10_000 }), { maxItems: 50 }),
              t.Record(t.String({ maxLength: 80 }), t.String({ maxLength: 80 }), {
                maxProperties: 100,
              }),
            ],
            {
              description:
                'An option id, the label of one, or a text (user_choice): `"a"`; a list of ' +
                'option ids (multiple): `["a", "b"]`; approval: `true` or `false`; quiz, ' +
                'question id → option id: `{"1": "b"}`.',
            },
          ),
        },
        { additionalProperties: false },
      ),
      reply: t.Object({
        run_id: t.String({ format: 'uuid' }),
        question_id: t.String({ format: 'uuid' }),
        status: RunStatus,
      }),
    },
    'POST /runs/{run_id}/cancel': {
      id: 'cancelRun',
      summary: 'Stop a run',
      params: { run_id: ref('run') },
      reply: t.Object({
        run_id: t.String({ format: 'uuid' }),
        status: RunStatus,
        cancelling: t.Boolean({
          description:
            'True while the run is being stopped; its stream then ends with done {status: ' +
            'cancelled}.',
        }),
      }),
      description: 'Stops the work itself. A run that has ended is answered as it ended.',
    },
  }),
)
