// What an organisation may keep, what a run reads of its files, and what a tool shows of what it
// made.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { memoryBlobs } from '#adapters/blobs/memory.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import { base64, startFiles } from '../../../test/support/files-kit.ts'
import { createUsage } from './usage.ts'
import { endServers, readEvents, startServer } from '../../../test/conformance/plugin/server.ts'

test('a full organisation is told its files and bytes; what goes makes room', async () => {
  const server = await startFiles({
    env: { FILES_FILES_MAX_PER_ORG: '4', FILES_BYTES_MAX_PER_ORG: '1000' },
  })
  const ann = await server.account()
  const bob = await server.account()
  const sessionId = server.sessionOf(ann)
  const told = ({ status, body }: { status: number; body: unknown }) => [
    status,
    (body as { code?: string; detail?: string }).code,
    (body as { detail?: string }).detail,
  ]
  for (let n = 0; n < 3; n++)
    assert.is((await server.upload(ann, `file ${n}`, { session_id: sessionId })).status, 200)
  const artifact = (content: string) =>
    server.call('POST', '/artifacts', {
      token: ann.token,
      body: { filename: 'a.txt', mime: 'text/plain', content },
    })
  assert.is((await artifact('made')).status, 201)
  const refusal = [
    409,
    'QUOTA_REACHED',
    'The organisation has 4 files, and may have 4. Remove some first.',
  ]
  assert.equal(told(await server.upload(ann, 'one more')), refusal)
  assert.equal(told(await artifact('one more')), refusal)
  assert.is((await server.upload(bob, 'of another organisation')).status, 200)
  await server.uploads().removeOfSession({ orgId: ann.org_id, userId: ann.user_id }, sessionId)
  assert.is((await server.upload(ann, 'x'.repeat(2000))).status, 200)
  assert.equal(told(await artifact('one more')), [
    409,
    'QUOTA_REACHED',
    'The organisation has 2004 bytes of files, and may have 1000. Remove some first.',
  ])
  const { id } = await server.artifacts().create(
    { orgId: ann.org_id, userId: ann.user_id },
    {
      key: 'k',
      filename: 'r.txt',
      mime: 'text/plain',
      content: Buffer.from('long'),
      isResult: true,
    },
  )
  assert.ok(id, 'the result of a tool is kept: its run could not go on')
  await server.stop()
})

test('an organisation that is over its bounds is counted once, however often it asks', async () => {
  let looks = 0
  let now = 0
  let sum = { files: 9, bytes: 9 }
  const own = {
    find: async () => ({ items: (looks++, [{ bytes: 5 }, { bytes: 4 }]) }),
    get: async () => sum,
    update: async (_: unknown, __: string, { set }: { set?: typeof sum }) => (sum = set ?? sum),
  }
  const usage = createUsage({
    store: { tenant: () => own } as never,
    clock: { monotonic: () => now },
    config: { files_max_per_org: 4, bytes_max_per_org: 1000 } as never,
  })
  const asked = async () =>
    usage.requireRoom({ orgId: 'o' }).then(
      () => 'room',
      (error: { code: string }) => error.code,
    )
  assert.equal(
    await Promise.all(Array.from({ length: 20 }, asked)),
    Array(20).fill('QUOTA_REACHED'),
  )
  assert.is(looks, 2, 'one look at the uploads, one at the artifacts')
  sum = { files: 3, bytes: 9 }
  assert.is(await asked(), 'room')
  sum = { files: 9, bytes: 9 }
  now = 60_000
  assert.is(await asked(), 'QUOTA_REACHED')
  assert.is(looks, 4)
})

test('beyond its number of conversations an organisation begins none, and forks none', async () => {
  const server = await startServer({ env: { RUNS_SESSIONS_MAX_PER_ORG: '2' } })
  const { token } = await server.account()
  const start = async (more: object = {}) =>
    server.call('POST', '/chat', { token, body: { message: 'hello', ...more } })
  const [{ body }] = [await start(), await start({ idempotency_key: 'again' })]
  const { session_id: id, run_id: run } = body as { session_id: string; run_id: string }
  await readEvents(await server.stream(token, run))
  const code = (answer: { body: unknown }) => (answer.body as { code?: string }).code
  assert.is(code(await start()), 'QUOTA_REACHED')
  assert.is(
    code(await server.call('POST', `/sessions/${id}/branch`, { token, body: {} })),
    'QUOTA_REACHED',
  )
  assert.is((await start({ session_id: id })).status, 200, 'those that are there go on')
  assert.is(
    (await start({ idempotency_key: 'again' })).status,
    200,
    'what was begun is answered again',
  )
  await server.stop()
})

test('of many long attachments what fits the window is read, and once for all runs', async () => {
  const blobs = memoryBlobs()
  let read = 0
  const counting: BlobsEngine = {
    ...blobs,
    within: orgId => {
      const own = blobs.within(orgId)
      return {
        ...own,
        async *get(hash, range) {
          for await (const part of own.get(hash, range)) {
            read += part.length
            yield part
          }
        },
      }
    },
  }
  const server = await startServer({
    given: { blobs: counting },
    env: { LIMITS_API_PER_SECOND: '10000' },
  })
  const { token } = await server.account(1_000_000)
  const ids: string[] = []
  for (let n = 0; n < 20; n++)
    ids.push(
      (
        (
          await server.call('POST', '/uploads', {
            token,
            body: {
              filename: `${n}.txt`,
              mime: 'text/plain',
              content_base64: base64(`${n} `.repeat(170_000)),
            },
          })
        ).body as { upload_id: string }
      ).upload_id,
    )
  read = 0
  const ask = async () => {
    const { body } = await server.call('POST', '/chat', {
      token,
      body: { message: 'read', attachments: ids },
    })
    return readEvents(await server.stream(token, (body as { run_id: string }).run_id))
  }
  const events = await ask()
  const cut = events.find(({ event }) => event === 'context_cut')!
  const once = read
  assert.ok(once > 0 && once < 4_500_000, `${once} of 8 million bytes were read`)
  assert.ok(
    (cut.data['dropped_attachment_characters'] as number) > 3_000_000,
    'what was not read is told',
  )
  await ask()
  assert.is(read, once, 'the second run reads nothing again')
  await server.stop()
})

test('the artifact of a note is shown before its result', async () => {
  const server = await startServer()
  const { token } = await server.account()
  const { body } = await server.call('POST', '/chat', {
    token,
    body: { message: '[[tool=note {"title":"A plan","text":"x"}]]' },
  })
  const events = await readEvents(await server.stream(token, (body as { run_id: string }).run_id))
  const at = events.findIndex(({ event }) => event === 'artifact')
  assert.equal(
    events.slice(at - 1, at + 2).map(({ event }) => event),
    ['tool_call', 'artifact', 'tool_result'],
  )
  const { artifact_id: id, filename } = events[at]!.data
  assert.is(filename, 'A plan.md')
  assert.is((await server.call('GET', `/artifacts/${id}`, { token })).text, '# A plan\n\nx\n')
  await server.stop()
})

test.after(endServers)
test.run()
