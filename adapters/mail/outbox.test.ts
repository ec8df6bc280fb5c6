import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mailKit } from '../../test/conformance/mail.ts'
import { opening } from '../../test/conformance/opening.ts'
import { manualClock } from '../clock/manual.ts'
import adapter, { outbox } from './outbox.ts'

const letter = { to: 'ann@example.org', subject: 'Hello', text: 'Hello.' }
const temporaryFolder = (): Promise<string> => fs.mkdtemp(join(tmpdir(), 'outbox-'))
const lettersIn = async (folder: string): Promise<string[]> =>
  (await fs.readdir(folder)).filter(name => name.endsWith('.eml')).toSorted()

mailKit(test, 'outbox', {
  place: async () => {
    const folder = await temporaryFolder()
    const clock = manualClock()
    return {
      open: () => outbox({ folder, clock }),
      received: async () =>
        Promise.all((await lettersIn(folder)).map(name => fs.readFile(join(folder, name), 'utf8'))),
      clean: () => fs.rm(folder, { recursive: true }),
    }
  },
})

test('a letter is for its owner alone, and its name sorts by its time', async () => {
  const folder = await temporaryFolder()
  const clock = manualClock(Date.UTC(2031, 4, 6))
  const mailer = await outbox({ folder, clock })
  await mailer.send(letter)
  await clock.advance(1000)
  await mailer.send({ ...letter, subject: 'Later' })
  const names = await lettersIn(folder)
  assert.match(names[0]!, /^2031-05-06T00-00-00\.000Z-/)
  assert.ok((await fs.readFile(join(folder, names[1]!), 'utf8')).includes('Subject: Later'))
  assert.is((await fs.stat(join(folder, names[0]!))).mode & 0o777, 0o600)
  assert.equal(await fs.readdir(join(folder, '.temporary')), [])
  await mailer.close()
})
test('a full disk is UNAVAILABLE and leaves nothing behind', async () => {
  const folder = await temporaryFolder()
  const open = async (...asked: Parameters<typeof fs.open>) => {
    const handle = await fs.open(...asked)
    return Object.assign(handle, {
      write: async () => {
        throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })
      },
    })
  }
  const mailer = await outbox({
    folder,
    clock: manualClock(),
    files: { ...fs, open: open as never },
  })
  await mailer.send(letter).then(
    () => assert.unreachable(),
    error => assert.match(error.message, 'disk is full'),
  )
  assert.equal(await lettersIn(folder), [])
  assert.equal(await fs.readdir(join(folder, '.temporary')), [])
})
test('the URL names the folder and the sender; a sender with a line break is refused', async () => {
  const dataDir = await temporaryFolder()
  const at = (url: string) => opening(url, { dataDir, clock: manualClock() })
  const mailer = await adapter.open(at('outbox:?from=Desk%20%3Cdesk@example.org%3E'))
  await mailer.send(letter)
  const [name] = await lettersIn(join(dataDir, 'outbox'))
  assert.ok(
    (await fs.readFile(join(dataDir, 'outbox', name!), 'utf8')).includes(
      'From: Desk <desk@example.org>',
    ),
  )
  await adapter.open(at('outbox:?from=a@b.example%0d%0aBcc:c@d.example')).then(
    () => assert.unreachable(),
    error => assert.is(error.code, 'INVALID_FIELD'),
  )
})
test.run()
