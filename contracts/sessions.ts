import { Type as t } from 'typebox'
import { contract, page, Paging, ref, Timestamp } from './contract.ts'
import { Artifact } from './files.ts'
import { RunStatus } from './runs.ts'

export const Session = t.Object({
  id: t.String({ format: 'uuid' }),
  title: t.String(),
  app_name: t.String(),
  status: t.Union([t.Literal('idle'), t.Literal('running'), t.Literal('paused')]),
  active_run_id: t.Union([t.String({ format: 'uuid' }), t.Null()]),
  queued: t.Integer({ minimum: 0 }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export const RunSummary = t.Object({
  run_id: t.String({ format: 'uuid' }),
  status: RunStatus,
  app_name: t.String(),
  model: t.String(),
  queue_seq: t.Integer({ minimum: 0 }),
  created_at: Timestamp,
  ended_at: t.Union([Timestamp, t.Null()]),
  credits: t.Union([t.Integer(), t.Null()]),
})
const SessionEvent = t.Object({
  run_id: t.String({ format: 'uuid' }),
  seq: t.Integer(),
  type: t.String(),
  data: t.Unknown(),
})
export const Message = t.Object({
  id: t.String({ format: 'uuid' }),
  run_id: t.String({ format: 'uuid' }),
  role: t.Union([t.Literal('user'), t.Literal('assistant')]),
  content: t.String(),
  status: RunStatus,
  created_at: Timestamp,
})

export const SearchHit = t.Object({
  session: Session,
  matches: t.Array(
    t.Object({
      message_id: t.String({ format: 'uuid' }),
      role: t.Union([t.Literal('user'), t.Literal('assistant')]),
      excerpt: t.String(),
    }),
    { description: 'The latest messages that hold every word; none where only the title does.' },
  ),
})
const MessageId = t.String({ ...ref('message'), description: '`id` of a message of this session.' })

const session = { params: { id: ref('session') } }
export const sessions = contract({
  'GET /sessions': {
    summary: 'List your conversations, the latest first',
    query: Paging,
    reply: page(Session),
  },
  'GET /sessions/{id}': {
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
    ...session,
    summary: 'Cut a conversation back to a message',
    reply: Session,
    faults: ['SESSION_BUSY'],
    description: 'The message stays; what follows it goes, with its events.',
    body: t.Object({ message_id: MessageId }, { additionalProperties: false }),
  },
  'PATCH /sessions/{id}': {
    ...session,
    summary: 'Rename a conversation',
    body: t.Object(
      { title: t.String({ minLength: 1, maxLength: 200 }) },
      { additionalProperties: false },
    ),
    reply: Session,
  },
  'DELETE /sessions/{id}': {
    ...session,
    summary: 'Delete a conversation with its runs and their events',
    reply: 'none',
    faults: ['SESSION_BUSY'],
  },
  'GET /sessions/{id}/messages': {
    ...session,
    summary: 'Read the history, the oldest first',
    description: 'A page is shorter than `limit` where messages are long.',
    query: Paging,
    reply: page(Message),
  },
  'GET /sessions/{id}/artifacts': {
    ...session,
    summary: 'List everything that was produced, the oldest first',
    query: Paging,
    reply: page(Artifact),
  },
  'GET /sessions/{id}/queue': {
    ...session,
    summary: 'Read which runs wait',
    reply: t.Object({
      paused: t.Boolean(),
      active_run_id: t.Union([t.String({ format: 'uuid' }), t.Null()]),
      items: t.Array(RunSummary),
    }),
  },
  'POST /sessions/{id}/queue/resume': {
    ...session,
    summary: 'Resume a queue that a failure paused',
    reply: Session,
  },
})
