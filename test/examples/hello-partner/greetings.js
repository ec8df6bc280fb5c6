// Orders, delivers and shows greetings. It knows ports and no database: an operator may have bound
// the ports to any.
import { fault } from 'agent-platform/plugin'
import { collection } from 'agent-platform/ports/storage'

export const Greetings = collection({
  name: 'hello_greetings',
  scope: 'tenant',
  owner: 'userId',
  index: [['orgId', 'userId', 'createdAt']],
})

const streamOf = id => `greeting:${id}`
const shown = ({ id, name, status, text, createdAt }) => ({
  id,
  name,
  status,
  text,
  created_at: new Date(createdAt).toISOString(),
})

export function createGreetings({ store, queue, eventlog, clock, config }) {
  const textFor = name => `${config.word}, ${name}!`
  const find = async (caller, id) => {
    const found = await store.tenant(caller).get(Greetings, id)
    if (!found || found.userId !== caller.userId) throw fault('NOT_FOUND', { what: 'greeting' })
    return found
  }
  return {
    textFor,
    async order(caller, { name }) {
      const greeting = {
        id: clock.id(),
        orgId: caller.orgId,
        userId: caller.userId,
        name,
        status: 'waiting',
        text: '',
        createdAt: clock.now(),
      }
      await store.tenant(caller).insert(Greetings, greeting)
      await queue.enqueue(
        'hello.deliver',
        { orgId: caller.orgId, id: greeting.id },
        { dedupeKey: greeting.id },
      )
      return shown(greeting)
    },
    async list(caller, { limit = 50, cursor }) {
      const { items, next } = await store.tenant(caller).find(Greetings, {
        where: { userId: caller.userId },
        orderBy: ['createdAt', 'desc'],
        limit,
        ...(cursor === undefined ? {} : { after: cursor }),
      })
      return { items: items.map(shown), ...(next === undefined ? {} : { next_cursor: next }) }
    },
    read: async (caller, id) => shown(await find(caller, id)),
    async remove(caller, id) {
      await find(caller, id)
      await eventlog.tenant(caller).remove(streamOf(id))
      await store.tenant(caller).remove(Greetings, id)
    },
    /**
     * A job may run more than once. What is delivered stays so, and its event is written once.
     */
    async deliver({ orgId, id }) {
      const greeting = await store.tenant({ orgId }).get(Greetings, id)
      if (!greeting || greeting.status === 'delivered') return
      const text = textFor(greeting.name)
      await eventlog
        .tenant({ orgId })
        .append(streamOf(id), [{ type: 'greeting_delivered', data: { text } }], { expect: 0 })
        .catch(error => {
          if (error.code !== 'STREAM_MOVED') throw error
        })
      await store.tenant({ orgId }).update(Greetings, id, { set: { status: 'delivered', text } })
    },
    /** What came after the cursor, then what comes, until it is delivered. */
    async follow(caller, id, after, signal) {
      await find(caller, id)
      const log = eventlog.tenant(caller)
      return (async function* () {
        if (after > 0) return
        for await (const batch of log.follow(streamOf(id), { after, signal })) {
          yield batch
          return
        }
      })()
    },
  }
}
