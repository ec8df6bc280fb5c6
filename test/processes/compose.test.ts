// What docker-compose.yml starts, as plain processes: the same commands with the same variables,
// their secrets in files, on the stores that are here. Only where the stores are, where each
// process keeps its
// folder and which port it listens on is changed.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createClient } from '../durability/client.ts'
import { readCompose, type Service } from '../support/compose.ts'
import { endProcesses, freePort, signUp, startProcess } from '../support/process.ts'
import { openStore } from './store.ts'

const store = await openStore()
const { services } = readCompose()
const dir = mkdtempSync(join(tmpdir(), 'agent-platform-compose-'))

if ('why' in store) test.skip(`docker-compose.yml as processes (${store.why})`, () => undefined)
else {
  const { database } = store
  const secretsDir = join(dir, 'secrets')
  mkdirSync(secretsDir)
  const secrets: Record<string, string> = {
    storage_url: database.url.href,
    queue_url: `agenda:${database.url.href}`,
    auth_secret: crypto.randomUUID(),
    opensearch_password: 'unused',
  }
  for (const [name, value] of Object.entries(secrets))
    writeFileSync(join(secretsDir, name), `${value}\n`)

  const here = async ({ environment = {}, command = [] }: Service, name: string) => {
    assert.equal(command.slice(-2), ['kernel/main.ts', 'start'])
    const env = Object.fromEntries(
      Object.entries(environment).map(([variable, value]) => [
        variable,
        value.replace('/run/secrets', secretsDir).replace(/\$\{\w+:-(.*)\}/, '$1'),
      ]),
    )
    const { OPENSEARCH_USERNAME: _, OPENSEARCH_PASSWORD_FILE: __, ...rest } = env
    // No letter is sent, and nothing is searched, in this test.
    return {
      ...rest,
      MAIL_URL: 'outbox:',
      SEARCH_URL: 'sqlite:',
      DATA_DIR: join(dir, name),
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
    }
  }

  test('its api and worker processes start, find each other, and are healthy', async () => {
    const members = await Promise.all(
      ['api', 'worker'].flatMap(name =>
        Array.from({ length: services[name]!.deploy!.replicas }, async (_, i) => {
          const env = await here(services[name]!, `${name}-${i}`)
          return { name, env, process: await startProcess(env) }
        }),
      ),
    )
    for (const { name, env } of members) {
      const [, program, flag, code] = services[name]!.healthcheck!.test
      assert.equal([program, flag], ['node', '-e'])
      execFileSync(process.execPath, ['-e', code!.replace('8080', env.PORT)])
    }
    const [first, second] = members.filter(({ name }) => name === 'api')
    const who = await signUp(first!.process.base, first!.env, 100)
    const starting = createClient(first!.process.base, who, 20_000)
    const reading = createClient(second!.process.base, who, 20_000)
    for (let n = 0; n < 5; n++) {
      const { follower, over } = reading.follow(
        await starting.start(`key-${n}`, { message: 'What are you?' }),
        `key-${n}`,
      )
      await over
      assert.match([...follower.frames.values()].at(-1)!, /"status":"done"/)
    }
    assert.is((await reading.balance()).held, 0)
    starting.close()
    reading.close()
  })

  test.after(async () => {
    await endProcesses()
    await store.close()
  })
}
test.after(() => rmSync(dir, { recursive: true, force: true }))
test.run()
