// A tool that ends its process, and one that keeps it from doing anything: after two processes the
// run ends with an error that names the call, and the next process serves.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, freePort, signUp, startProcess, type Process } from '../support/process.ts'
import { createClient, pause, seenIn } from './client.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-fatal-'))
const began = join(dataDir, 'began.txt')
writeFileSync(began, '')
const env = {
  DATA_DIR: dataDir,
  PORT: String(await freePort()),
  MODELS_URL: 'scripted:?interval_ms=0',
  PLUGINS_DIR: resolve(import.meta.dirname, 'plugins'),
  FATAL_BEGAN: began,
  RUNS_SWEEP_MS: '50',
}
const bodies = (name: string) =>
  readFileSync(began, 'utf8')
    .split('\n')
    .filter(line => line === name).length

let server: Process = await startProcess(env)
const client = createClient(server.base, await signUp(server.base, env, 100))

/**
 * Until the body has begun for the n-th time; then its process is gone, by itself or by whoever
 * watches it.
 */
async function dies(name: string, times: number): Promise<void> {
  const exited = server.child.exitCode === null ? once(server.child, 'exit') : Promise.resolve()
  for (let tries = 0; bodies(name) < times; tries++) {
    assert.ok(tries < 1500, `${name} never began for the ${times}. time`)
    await pause(20)
  }
  if (name === 'loops') await server.kill('SIGKILL')
  await exited
}

for (const name of ['exits', 'loops'])
  test(`a tool that ${name} takes two processes with it, and no more`, async () => {
    // The process may be gone before it has answered: the client asks again under its key.
    const starting = client.start(name, { message: `[[tool=${name} {}]]` })
    for (let times = 1; times <= 2; times++) {
      await dies(name, times)
      server = await startProcess(env)
    }
    const { run_id: runId } = await starting
    const log = (await client.log(runId)).map(([, frame]) => seenIn(frame))
    const last = log.at(-1)!
    assert.equal([last.type, last.data['code'], bodies(name)], ['error', 'CALL_FATAL', 2])
    assert.match(
      String(last.data['detail']),
      new RegExp(`2 times in the middle of the tool call ${name} \\(`),
    )
    const { run_id: next } = await client.start(`${name}-next`)
    assert.is(
      (await client.log(next)).at(-1)![1].includes('event: done'),
      true,
      'the process serves others',
    )
  })

test.after(async () => {
  client.close()
  await endProcesses()
  rmSync(dataDir, { recursive: true, force: true })
})
test.run()
