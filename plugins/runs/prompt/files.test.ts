// Files that a user attached, as the model reads them.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startOffline } from '../../../test/support/runs/server.ts'

test('attachments are read by the model, also those of an earlier message', async () => {
  const { server, token, ask } = await startOffline()
  const content_base64 = Buffer.from(
    'The harbour of Brest was dredged in 1952. The crane weighs ninety tons.',
  ).toString('base64')
  const { upload_id: upload } = (
    await server.call('POST', '/uploads', {
      token,
      body: { filename: 'harbour.txt', mime: 'text/plain', content_base64 },
    })
  ).body as { upload_id: string }
  const first = await ask({ message: 'When was the harbour dredged?', attachments: [upload] })
  assert.match(first.text, /1952[\s\S]*harbour\.txt/)
  assert.match(
    (await ask({ message: 'How much does the crane weigh?', session_id: first.run.session_id }))
      .text,
    /ninety tons/,
  )
  await server.stop()
})

test.run()
