// A large upload takes little memory: the server is its own process, so that what is measured is
// its own.
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { commandLine, endProcesses, startProcess } from '../../../test/support/process.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-'))
const mebibyte = 1 << 20
const fileBytes = 60 * mebibyte
const growthBytesMax = 120 * mebibyte
const part = Buffer.from(Uint8Array.from({ length: 3 << 16 }, (_, i) => (i * 7919) >> 3))
const parts = fileBytes / part.length

test('60 MiB arrive whole, and the process grows by less than twice that', async () => {
  const server = await startProcess({ DATA_DIR: dataDir })
  const { api_key } = await commandLine<{ api_key: string }>(
    ['admin', 'create-user', '--email', 'a@example.org'],
    { DATA_DIR: dataDir },
  )
  const { access_token: token } = (await (
    await fetch(`${server.base}/auth/token`, { method: 'POST', headers: { 'x-api-key': api_key } })
  ).json()) as { access_token: string }
  const resident = async () =>
    Number(
      /^process_resident_memory_bytes (\d+)/m.exec(
        await (await fetch(`${server.base}/metrics`)).text(),
      )![1],
    )
  const before = await resident()
  const seen: number[] = []
  const hash = createHash('sha256')
  async function* body() {
    yield Buffer.from('{"content_base64":"')
    for (let i = 0; i < parts; i++) {
      hash.update(part)
      yield Buffer.from(part.toString('base64'))
      if (i % 20 === 0) seen.push(await resident())
    }
    yield Buffer.from('","filename":"large.bin","mime":"application/octet-stream"}')
  }
  const uploaded = await fetch(`${server.base}/uploads`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body() as unknown as ReadableStream,
    duplex: 'half',
  } as RequestInit)
  const text = await uploaded.text()
  assert.is(uploaded.status, 200, text)
  const { upload_id } = JSON.parse(text) as { upload_id: string }
  seen.push(await resident())
  const told = (await (
    await fetch(`${server.base}/uploads/${upload_id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  ).json()) as Record<string, unknown>
  assert.is(told['bytes'], fileBytes)
  assert.is(told['sha256'], hash.digest('hex'))
  const raw = createHash('sha256')
  for await (const chunk of (
    await fetch(`${server.base}/uploads/${upload_id}/raw`, {
      headers: { authorization: `Bearer ${token}` },
    })
  ).body!)
    raw.update(chunk)
  assert.is(raw.digest('hex'), told['sha256'])
  seen.push(await resident())
  const growth = Math.max(...seen) - before
  assert.ok(
    seen.length > 10 && growth < growthBytesMax,
    `it grew by ${Math.round(growth / mebibyte)} MiB`,
  )
  await server.kill('SIGTERM')
})

test.after(async () => {
  await endProcesses()
  rmSync(dataDir, { recursive: true, force: true })
})
test.run()
