// Between the end in a run's stream and the end in its document. A reader that saw the first finds
// the answer, and so does the model.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Change, StorageEngine } from '#ports/storage.ts'
import { endEngines, lasting, startEngine } from '../../../test/support/engine.ts'
import { door, says } from '../../../test/support/scripted-model.ts'

type Message = { id: string; role: string; content: string; status: string }

const doors: { open(): void }[] = []
/** An engine that closes documents of runs only when the door is open. */
async function late() {
  const closing = door()
  const { storage, eventlog } = lasting()
  doors.push(closing)
  const update = async (
    ...[collection, id, change, options]: Parameters<StorageEngine['update']>
  ) => {
    if (collection.name === 'runs' && (change as Change).set?.['phase'] === 'closed')
      await closing.passed
    return storage.update(collection, id, change, options)
  }
  const engine = await startEngine((_, turn) => says(`answer ${turn + 1}`), {
    given: { storage: { ...storage, update }, eventlog },
  })
  const asked = async <T>(method: string, path: string, body?: object) =>
    (await engine.call(method, path, { token: engine.who.token, ...(body ? { body } : {}) }))
      .body as T
  return { ...engine, closing, asked }
}

test('the next run of the conversation has the answer before it in front of it', async () => {
  const { chat, read, model, closing, run } = await late()
  const first = await chat('one')
  const second = await chat('two', { session_id: first.session_id })
  await read(first.run_id)
  await read(second.run_id)
  assert.is((await run(first.run_id)).phase, 'placed', 'its document has not heard of the end')
  assert.equal(
    model.requests[1]!.messages.filter(({ role }) => role !== 'system').map(
      ({ content }) => content,
    ),
    ['one', 'answer 1', 'two'],
  )
  closing.open()
})

test('the conversation, its runs and a fork of it have what the stream has told', async () => {
  const { chat, read, closing, closed, asked } = await late()
  const { run_id: id, session_id: session } = await chat('one')
  await read(id)
  const all = async (of = session) =>
    (await asked<{ items: Message[] }>('GET', `/sessions/${of}/messages`)).items
  const messages = await all()
  const summary = async () =>
    (await asked<{ runs: Record<string, unknown>[] }>('GET', `/sessions/${session}`)).runs[0]!
  const before = await summary()
  assert.equal(
    messages.map(({ role, content, status }) => [role, content, status]),
    [
      ['user', 'one', 'done'],
      ['assistant', 'answer 1', 'done'],
    ],
  )
  assert.equal(
    [before['status'], before['credits'], typeof before['ended_at']],
    ['done', 1, 'string'],
  )
  const fork = await asked<{ id: string }>('POST', `/sessions/${session}/branch`, {})
  assert.equal(
    (await all(fork.id)).map(({ content }) => content),
    ['one', 'answer 1'],
  )
  closing.open()
  await closed(id)
  // The time of the end may differ by the moment between the two.
  const timeless = (list: Message[]) =>
    list.map(({ id: message, role, content, status }) => [message, role, content, status])
  assert.equal(timeless(await all()), timeless(messages))
  const { ended_at: _, ...after } = await summary()
  const { ended_at: __, ...told } = before
  assert.equal(after, told)
})

test('a run that goes on is told as it is', async () => {
  const going = door()
  const { storage, eventlog } = lasting()
  const engine = await startEngine(
    async function* () {
      await going.passed
      yield* says('at last')
    },
    { given: { storage, eventlog } },
  )
  const { run_id: id, session_id: session } = await engine.chat('one')
  await engine.model.asked(1)
  const { body } = await engine.call('GET', `/sessions/${session}/messages`, {
    token: engine.who.token,
  })
  assert.equal(
    (body as { items: Message[] }).items.map(({ role, status }) => [role, status]),
    [['user', 'running']],
  )
  going.open()
  await engine.closed(id)
})

test.after(() => {
  for (const { open } of doors) open()
  return endEngines()
})
test.run()
