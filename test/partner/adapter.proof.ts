// A partner's adapter: found by its scheme, checked by the port's kit, and served; a broken one is
// found out.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, runMain, signUp, startProcess } from '../support/process.ts'

type Report = {
  ok: boolean
  holds: number
  fails: number
  checks: { check: string; result: string; detail: string }[]
}
const home = mkdtempSync(join(tmpdir(), 'agent-platform-adapter-'))
const folder = join(home, 'hello-adapter')
const file = join(folder, 'models/parrot.js')
cpSync(resolve(import.meta.dirname, '../examples/hello-adapter'), folder, { recursive: true })
const whole = readFileSync(file, 'utf8')
const env = { ADAPTERS_DIR: folder, DATA_DIR: join(home, 'data') }
const check = async (port: string, url: string) => {
  const { code, out } = await runMain(['adapters', 'check', port, url, '--json'], env)
  return { code, ...(JSON.parse(out) as Report) }
}

test("it is listed, passes its port's kit, and serves a run", async () => {
  const { out } = await runMain(['adapters', 'list'], env)
  assert.match(out, /models +MODELS_URL .*parrot:/)
  const { code, ok, holds, checks } = await check('models', 'parrot:')
  assert.equal(
    [code, ok, holds],
    [0, true, 12],
    JSON.stringify(checks.filter(({ result }) => result === 'fails')),
  )
  assert.equal(
    checks.filter(({ result }) => result === 'unsupported').map(({ check: title }) => title),
    ['models: tools', 'models: reasoning', 'models: prefill', 'models: resume'],
  )
  const running = { ...env, MODELS_URL: 'parrot:?pause_ms=1' }
  const server = await startProcess(running)
  const { token } = await signUp(server.base, running, 10)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { run_id: id } = (await (
    await fetch(`${server.base}/chat`, {
      method: 'POST',
      headers,
      body: '{"message":"Polly wants a cracker."}',
    })
  ).json()) as { run_id: string }
  const text = [
    ...(await (await fetch(`${server.base}/runs/${id}/events`, { headers })).text()).matchAll(
      /^event: token\ndata: (.*)$/gm,
    ),
  ]
    .map(([, data]) => (JSON.parse(data!) as { text: string }).text)
    .join('')
  assert.is(text, 'Polly wants a cracker.')
  await server.kill('SIGTERM')
})

test('what it does not keep is named', async () => {
  for (const [right, wrong, culprit] of [
    [
      "yield [\n          {\n            type: 'usage'",
      "if (words.length < 3) yield [\n          {\n            type: 'usage'",
      /an answer ends with its usage/,
    ],
    ['words.slice(0, most)', 'words', /outputTokensMax cuts the answer/],
    [
      '          signal.throwIfAborted()\n          yield',
      '          yield',
      /an abort in the middle/,
    ],
    ['if (key !== model.key)', "if (key === 'nobody')", /not in the catalogue is refused/],
  ] as const) {
    assert.ok(whole.includes(right))
    writeFileSync(file, whole.replace(right, wrong))
    const { code, ok, fails, checks } = await check('models', 'parrot:')
    assert.equal([code, ok], [1, false])
    assert.ok(
      fails > 0 && checks.some(one => one.result === 'fails' && culprit.test(one.check)),
      JSON.stringify(checks),
    )
  }
  writeFileSync(file, whole)
})

test('the adapters of the house hold too, and mistakes are told in a sentence', async () => {
  assert.is((await check('storage', `sqlite:${home}/{n}.db`)).ok, true)
  for (const [args, sentence] of [
    [['storage', `sqlite:${home}/one.db`], /^url: names one place for all checks; write \{n\}/],
    [
      ['nonsense', 'x:'],
      new RegExp(
        '^port: .*there are storage, eventlog, blobs, search, billing, queue, limits, mail, ' +
          'traces, clock, models',
      ),
    ],
    [['storage', 'couch:'], /there is no adapter "couch:"; there are memory: mongodb: sqlite:/],
    [[], /^port: is required/],
  ] as const) {
    const { code, err } = await runMain(['adapters', 'check', ...args], env)
    assert.is(code, 1)
    assert.match(err, sentence)
  }
  writeFileSync(join(folder, 'models/empty.js'), 'export const nothing = 1')
  assert.match(
    (await runMain(['adapters', 'check', 'models', 'empty:'], env)).err,
    /empty\.js has no adapter of models for empty:/,
  )
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
