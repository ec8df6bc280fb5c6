// A table of contents: what this plugin needs, offers and does. What is only declared here needs no
// undoing.
import { definePlugin, into } from 'agent-platform/plugin'
import { SystemClock } from 'agent-platform/ports/clock'
import { EventLog } from 'agent-platform/ports/eventlog'
import { JobQueue } from 'agent-platform/ports/queue'
import { Storage } from 'agent-platform/ports/storage'
import { Tools } from 'agent-platform/plugins/runs'
import { events, greetings as contract } from './contract.js'
import { createGreetings, Greetings } from './greetings.js'

export default definePlugin({
  name: 'hello',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract,
  uses: { store: Storage, queue: JobQueue, eventlog: EventLog, clock: SystemClock },
  // HELLO_WORD in the environment.
  config: {
    type: 'object',
    properties: {
      word: {
        type: 'string',
        minLength: 1,
        maxLength: 40,
        default: 'Hello',
        description: 'How a greeting begins.',
      },
    },
  },
  collections: [Greetings],
  services: { greetings: createGreetings },
  routes: {
    'POST /greetings': ({ greetings, caller, body }) => greetings.order(caller, body),
    'GET /greetings': ({ greetings, caller, query }) => greetings.list(caller, query),
    'GET /greetings/{id}': ({ greetings, caller, params }) => greetings.read(caller, params.id),
    'GET /greetings/{id}/events': ({ greetings, caller, params, after, signal }) =>
      greetings.follow(caller, params.id, after, signal),
    'DELETE /greetings/{id}': ({ greetings, caller, params }) =>
      greetings.remove(caller, params.id),
  },
  jobs: { 'hello.deliver': { run: ({ greetings, data }) => greetings.deliver(data) } },
  emits: events,
  contributes: [
    into(Tools, ({ greetings }) => ({
      name: 'greet',
      description: 'Greets somebody by name.',
      effect: 'none',
      parameters: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string', minLength: 1, maxLength: 80 } },
        additionalProperties: false,
      },
      run: ({ name }) => ({ content: greetings.textFor(name) }),
    })),
  ],
})
