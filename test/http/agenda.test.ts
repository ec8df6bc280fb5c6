// A server whose jobs lie with Agenda and whose files lie in GridFS: runs are driven, uploads are
// kept, and a stop leaves no job behind.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freshDatabase, mongoUrl } from '../support/databases/mongodb.ts'
import { endProcesses, signUp, startProcess } from '../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-agenda-'))

if (mongoUrl === undefined)
  test.skip('a server on Agenda and GridFS (MONGODB_URL is not set)', () => undefined)
else
  test('a server on Agenda and GridFS drives runs, keeps uploads, and ends when told', async () => {
    const { url, connect, clean } = freshDatabase()
    const env = {
      DATA_DIR: join(home, 'data'),
      QUEUE_URL: `agenda:${url.href}`,
      BLOBS_URL: url.href,
      MODELS_URL: 'scripted:?interval_ms=0',
    }
    const server = await startProcess(env)
    const { token } = await signUp(server.base, env, 100)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const { run_id: id } = (await (
      await fetch(`${server.base}/chat`, { method: 'POST', headers, body: '{"message":"Hello."}' })
    ).json()) as { run_id: string }
    assert.match(
      await (await fetch(`${server.base}/runs/${id}/events`, { headers })).text(),
      /^event: done$/m,
    )
    const upload = await fetch(`${server.base}/uploads`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        filename: 'notes.txt',
        mime: 'text/plain',
        content_base64: Buffer.from('Some notes.').toString('base64'),
      }),
    })
    const { upload_id: uploadId } = (await upload.json()) as { upload_id: string }
    assert.is(
      await (await fetch(`${server.base}/uploads/${uploadId}/raw`, { headers })).text(),
      'Some notes.',
    )
    const { db, close } = await connect()
    assert.equal(
      [
        await db.collection('blobs.files').countDocuments(),
        (await db.collection('agendaJobs').countDocuments()) > 0,
      ],
      [1, true],
    )
    await server.kill('SIGTERM')
    assert.equal(
      [await db.collection('agendaJobs').countDocuments({ state: 'running' }), server.errors()],
      [0, ''],
    )
    await close()
    await clean()
  })

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
