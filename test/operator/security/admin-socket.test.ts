// The admin socket lies where nobody else can put one; otherwise neither side uses it.
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { askServer, serveAdmin, socketPath } from '../../../kernel/cli/admin.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-socket-'))
const made: string[] = []
/** Deep enough that the socket's path would not fit in it. */
function deep(name: string): { dataDir: string; path: string; folder: string } {
  const dataDir = join(home, name.padEnd(100, 'x'))
  mkdirSync(dataDir, { mode: 0o700 })
  const path = socketPath(dataDir)
  const folder = dirname(path)
  made.push(folder)
  return { dataDir, path, folder }
}
const told = { ok: true as const, result: 'it is served' }
const commands = () =>
  new Map([
    [
      'hello',
      {
        summary: '',
        options: { type: 'object', properties: {} } as never,
        run: async () => told.result,
      },
    ],
  ])
const refusal = (work: Promise<unknown>) =>
  work.then(
    () => 'allowed',
    (error: Error) => error.message,
  )
const listening = (path: string) =>
  new Promise<Server>(done => {
    const server: Server = createServer(socket =>
      socket.end('{"ok":true,"result":"mine"}\n'),
    ).listen(path, () => done(server))
  })

test('a folder of its own, for this user alone', async () => {
  const { dataDir, path, folder } = deep('sound')
  assert.is(await askServer(dataDir, 'hello', {}), undefined)
  const close = await serveAdmin(dataDir, commands)
  assert.is(statSync(folder).mode & 0o777, 0o700)
  assert.equal(await askServer(dataDir, 'hello', {}), told)
  await close()
  assert.not.ok(path.startsWith(dataDir))
})

for (const [why, plant, sentence] of [
  [
    'a folder that others may enter',
    ({ folder }) => {
      mkdirSync(folder)
      chmodSync(folder, 0o777)
    },
    /others may enter \(mode 777 instead of 700\)/,
  ],
  [
    'a link to one',
    ({ folder, dataDir }) => {
      mkdirSync(join(dataDir, 'other'))
      symlinkSync(join(dataDir, 'other'), folder)
    },
    /is no folder of its own/,
  ],
  ...(process.getuid?.() === 0
    ? [
        [
          "another user's folder",
          ({ folder }: { folder: string }) => {
            mkdirSync(folder, { mode: 0o700 })
            chownSync(folder, 54_321, 54_321)
          },
          /belongs to another user/,
        ] as const,
      ]
    : []),
] as (readonly [string, (place: ReturnType<typeof deep>) => void, RegExp])[])
  test(`${why}: nothing is asked there, and nothing is served`, async () => {
    const place = deep(why.replaceAll(/\W/g, '-'))
    plant(place)
    assert.match(await refusal(serveAdmin(place.dataDir, commands)), sentence)
    const planted = await listening(place.path)
    assert.match(await refusal(askServer(place.dataDir, 'hello', {})), sentence)
    await new Promise(done => planted.close(done))
  })

test('a client refuses what is no socket; a server refuses a folder open to others', async () => {
  const { dataDir, path, folder } = deep('file')
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(path, '')
  assert.match(await refusal(askServer(dataDir, 'hello', {})), /none of this user/)
  const open = join(home, 'open')
  mkdirSync(open)
  chmodSync(open, 0o755)
  assert.match(await refusal(serveAdmin(open, commands)), /others may enter \(mode 755/)
})

test.after(() => {
  for (const folder of [home, ...made]) rmSync(folder, { recursive: true, force: true })
})
test.run()
