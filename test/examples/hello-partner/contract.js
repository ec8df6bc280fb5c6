// The wire: validation, the OpenAPI page and the checks of the replies come from these rows.
import { contract, named, page, Paging, ref, Timestamp } from 'agent-platform/contract'

const name = {
  type: 'string',
  minLength: 1,
  maxLength: 80,
  example: 'World',
  description: 'Whom to greet.',
}
const Greeting = named('Greeting', {
  type: 'object',
  required: ['id', 'name', 'status', 'text', 'created_at'],
  properties: {
    id: { type: 'string', format: 'uuid' },
    name,
    status: { enum: ['waiting', 'delivered'] },
    text: { type: 'string' },
    created_at: Timestamp,
  },
})

export const greetings = contract({
  'POST /greetings': {
    id: 'orderGreeting',
    summary: 'Order a greeting',
    description: 'It is delivered a moment later; follow its events.',
    status: 201,
    reply: Greeting,
    body: { type: 'object', required: ['name'], properties: { name }, additionalProperties: false },
  },
  'GET /greetings': {
    id: 'listGreetings',
    summary: 'List your greetings',
    query: Paging,
    reply: page(Greeting),
  },
  'GET /greetings/{id}': {
    id: 'getGreeting',
    summary: 'Read a greeting',
    params: { id: ref('greeting') },
    reply: Greeting,
  },
  'GET /greetings/{id}/events': {
    id: 'followGreeting',
    summary: 'Follow a greeting until it is delivered',
    params: { id: ref('greeting') },
    reply: 'sse',
  },
  'DELETE /greetings/{id}': {
    id: 'removeGreeting',
    summary: 'Remove a greeting',
    params: { id: ref('greeting') },
    reply: 'none',
  },
})

/** Event types that it puts on streams. */
export const events = {
  greeting_delivered: {
    type: 'object',
    required: ['text'],
    properties: { text: { type: 'string' } },
  },
}
