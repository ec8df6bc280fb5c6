// Artifacts over the socket.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256, startFiles } from '../../test/support/files-kit.ts'

const server = await startFiles()
const ann = await server.account()
const text = 'Grüße, 世界 😀\n'

test("an artifact of one's own is created and downloaded", async () => {
  const session_id = server.sessionOf(ann)
  const made = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'plan.md', mime: 'text/markdown', content: text, session_id },
  })
  assert.is(made.status, 201, made.text)
  const { id, created_at, ...told } = made.body as Record<string, unknown>
  assert.ok(created_at)
  assert.equal(told, {
    filename: 'plan.md',
    mime: 'text/markdown',
    bytes: Buffer.byteLength(text),
    sha256: sha256(text),
    session_id,
    run_id: null,
  })
  const { headers, text: raw } = await server.call('GET', `/artifacts/${id}`, { token: ann.token })
  assert.is(raw, text)
  assert.is(headers.get('content-disposition'), "attachment; filename*=UTF-8''plan.md")
  assert.is(headers.get('x-content-type-options'), 'nosniff')
  const again = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'plan.md', mime: 'text/markdown', content: text },
  })
  assert.is.not((again.body as { id: string }).id, id, 'two creations are two artifacts')
  // Longer than anything that is held whole.
  const long = 'ü'.repeat(3 << 20)
  const stored = await server.call('POST', '/artifacts', {
    token: ann.token,
    body: { filename: 'long.md', mime: 'text/markdown', content: long },
  })
  assert.equal([stored.status, (stored.body as { sha256: string }).sha256], [201, sha256(long)])
})

test('nothing was an internal error', () =>
  assert.equal(
    server.logged.filter(line => line.includes('request.failed')),
    [],
  ))

test.after(() => server.stop())
test.run()
test.after(() => server.stop())
test.run()
