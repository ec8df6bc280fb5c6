import { Type as t } from 'typebox'
import { contract, named, page, Paging, ref, tagged, Timestamp } from './contract.ts'
import { Artifact } from './files.ts'
import { RunSummary } from './run-views.ts'
import { RunStatus } from './runs.ts'

export const Session = named(
  'Session',
  t.Object({
    id: t.String({ format: 'uuid' }),
    title: t.String({ example: 'Two offers compared' }),
    app_name: t.String({ example: 'main' }),
    status: t.Union([t.Literal('idle'), t.Literal('running'), t.Literal('paused')], {
      description:
        '`paused`: a run failed, and those behind it are blocked until the queue is resumed.',
    }),
    active_run_id: t.Union([t.String({ format: 'uuid' }), t.Null()]),
    queued: t.Integer({ minimum: 0, description: 'Runs that wait.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)
const SessionEvent = named(
  'SessionEvent',
  t.Object({
    run_id: t.String({ format: 'uuid' }),
    seq: t.Integer(),
    type: t.String({ example: 'token' }),
    data: t.Unknown({ example: { text: 'Hello', step: 0, attempt: 1 } }),
  }),
)
export const Message = named(
  'Message',
  t.Object({
    id: t.String({ format: 'uuid' }),
    run_id: t.String({ format: 'uuid' }),
    role: t.Union([t.Literal('user'), t.Literal('assistant')]),
    content: t.String({ example: 'Compare the two offers that I attached.' }),
    status: RunStatus,
    created_at: Timestamp,
  }),
)

export const SearchHit = named(
  'SearchHit',
  t.Object({
    session: Session,
    matches: t.Array(
      t.Object({
        message_id: t.String({ format: 'uuid' }),
        role: t.Union([t.Literal('user'), t.Literal('assistant')]),
        excerpt: t.String({ example: '… the two offers …' }),
      }),
      { description: 'The latest messages that hold every word; none where only the title does.' },
    ),
  }),
)
const MessageId = t.String({ ...ref('message'), description: '`id` of a message of this session.' })

const session = { params: { id: ref('session') } }
export const sessions = tagged(
  'Conversations',
  contract({
    'GET /sessions': {
      id: 'listSessions',
      description: 'Without their messages.',
      summary: 'List your conversations, the latest first',
      query: Paging,
      reply: page(Session),
    },
    'GET /sessions/{id}': {
      id: 'getSession',
      ...session,
      summary: 'Read a conversation',
      description:
        'With its latest runs, newest first, and the recent events of the active run, else ' +
        'of the newest.',
      reply: t.Object({
        ...Session.properties,
        runs: t.Array(RunSummary),
        events: t.Array(SessionEvent),
      }),
    },
    'GET /sessions/search': {
      id: 'searchSessions',
      summary: 'Search your conversations',
      description:
        'Those in which a message, or the title, holds every word, the latest begun first. ' +
        'Messages are found from shortly after the end of their run; what a fork has in ' +
        'common with the conversation that it was made of is found there. A page is full ' +
        'unless it is the last.',
      query: t.Object({
        ...Paging.properties,
        q: t.String({ minLength: 1, maxLength: 200, description: 'Words.' }),
      }),
      reply: page(SearchHit),
    },
    'POST /sessions/{id}/branch': {
      id: 'branchSession',
      bodyOptional: true,
      ...session,
      summary: 'Fork a conversation at a message',
      status: 201,
      reply: Session,
      faults: ['CONFLICT', 'QUOTA_REACHED'],
      description:
        'A new conversation with everything up to the message, or all of it. A run under way ' +
        'stays where it is; copies cost nothing.',
      body: t.Object(
        {
          message_id: t.Optional(MessageId),
          title: t.Optional(t.String({ minLength: 1, maxLength: 200 })),
        },
        { additionalProperties: false },
      ),
    },
    'POST /sessions/{id}/truncate': {
      id: 'truncateSession',
      ...session,
      summary: 'Cut a conversation back to a message',
      reply: Session,
      faults: ['SESSION_BUSY'],
      description: 'The message stays; what follows it goes, with its events.',
      body: t.Object({ message_id: MessageId }, { additionalProperties: false }),
    },
    'PATCH /sessions/{id}': {
      id: 'renameSession',
      description: 'Only the title can be changed.',
      ...session,
      summary: 'Rename a conversation',
      body: t.Object(
        { title: t.String({ minLength: 1, maxLength: 200, example: 'Two offers compared' }) },
        { additionalProperties: false },
      ),
      reply: Session,
    },
    'DELETE /sessions/{id}': {
      id: 'deleteSession',
      description: 'Its uploads and artifacts go with it. Refused while a run is under way.',
      ...session,
      summary: 'Delete a conversation with its runs and their events',
      reply: 'none',
      faults: ['SESSION_BUSY'],
    },
    'GET /sessions/{id}/messages': {
      id: 'listMessages',
      ...session,
      summary: 'Read the history, the oldest first',
      description: 'A page is shorter than `limit` where messages are long.',
      query: Paging,
      reply: page(Message),
    },
    'GET /sessions/{id}/artifacts': {
      id: 'listArtifacts',
      description: 'Those of its runs, and your own that name the session.',
      ...session,
      summary: 'List everything that was produced, the oldest first',
      query: Paging,
      reply: page(Artifact),
    },
    'GET /sessions/{id}/queue': {
      id: 'getQueue',
      description: 'The run under way, and those that wait, in their order.',
      ...session,
      summary: 'Read which runs wait',
      reply: t.Object({
        paused: t.Boolean(),
        active_run_id: t.Union([t.String({ format: 'uuid' }), t.Null()]),
        items: t.Array(RunSummary),
      }),
    },
    'POST /sessions/{id}/queue/resume': {
      id: 'resumeQueue',
      description: 'The runs that wait go on in their order.',
      ...session,
      summary: 'Resume a queue that a failure paused',
      reply: Session,
    },
  }),
)
