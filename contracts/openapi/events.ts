// The events of streams: one schema for each type, and their union.
import type { TSchema } from 'typebox'
import type { Json, Schemas } from './schemas.ts'

const pascal = (type: string) =>
  type
    .split(/[^A-Za-z0-9]+/)
    .map(word => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')
export const eventNameOf = (type: string): string => `${pascal(type)}Event`

/**
 * How an event travels over Server-Sent Events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */
export const sseNote =
  '`id` is `seq`, `event` is `type`, and `data` is `data` as JSON on one line. Lines that begin ' +
  'with a colon keep the connection open. Skip types that you do not know.'

/** Adds `<Type>Event` for each type, and `RunEvent`, which is one of them. */
export function addEvents(schemas: Schemas, events: Readonly<Record<string, TSchema>>): void {
  const types = Object.keys(events)
  for (const type of types)
    schemas.add(eventNameOf(type), {
      type: 'object',
      required: ['seq', 'type', 'data'],
      properties: {
        seq: {
          type: 'integer',
          minimum: 1,
          description: 'Its place in the stream; the cursor for what follows.',
        },
        type: { type: 'string', enum: [type] },
        data: schemas.writeNamed(`${pascal(type)}Data`, events[type]!),
      },
    })
  const reference = (type: string) => `#/components/schemas/${eventNameOf(type)}`
  if (types.length > 0)
    schemas.add('RunEvent', {
      description: `One event of a run. Over Server-Sent Events: ${sseNote}`,
      oneOf: types.map(type => ({ $ref: reference(type) })),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(types.map(type => [type, reference(type)])),
      },
    })
}

/** The content of an event stream: a text, whose events `contentSchema` describes. */
export const streamContent = (hasEvents: boolean): Json => ({
  'text/event-stream': {
    schema: {
      type: 'string',
      contentMediaType: 'text/event-stream',
      ...(hasEvents ? { contentSchema: { $ref: '#/components/schemas/RunEvent' } } : {}),
      'x-server-sent-events': sseNote,
    },
    example:
      'id: 1\nevent: token\ndata: {"text":"Hello","step":0,"attempt":1}\n\n' +
      'id: 2\nevent: done\ndata: {"status":"done",' +
      '"session_id":"0193a6f0-1c2d-7e3f-8a4b-5c6d7e8f9a01"}\n\n',
  },
})
