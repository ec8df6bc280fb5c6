// A partner's first afternoon: pack the platform, install the tarball elsewhere, test a plugin
// there, and serve it, upgraded, rolled back and removed, from a running server.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  commandLine,
  endProcesses,
  freePort,
  runMain,
  signUp,
  startProcess,
} from '../support/process.ts'
import { installPlatform, pack, packPlatform, repository, run } from './packed.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-partner-'))
const partner = join(home, 'hello-partner')
const env = {
  DATA_DIR: join(home, 'data'),
  MODELS_URL: 'scripted:?tokens=5&interval_ms=0',
  PORT: String(await freePort()),
  HELLO_WORD: 'Good morning',
}

test('the platform is packed as JavaScript with declarations', async () => {
  const platform = await packPlatform(home)
  const { stdout } = await run('tar', ['-tzf', platform], home)
  const files = stdout.split('\n')
  for (const name of [
    'kernel/index.js',
    'kernel/index.d.ts',
    'ports/storage.d.ts',
    'test/conformance/plugin/harness.js',
    'test/conformance/storage.js',
    'plugins/runs/api.d.ts',
  ])
    assert.ok(files.includes(`package/dist/${name}`), name)
  assert.equal(
    files.filter(
      file =>
        (file.endsWith('.ts') && !file.endsWith('.d.ts')) ||
        (file.includes('.test.') && !file.includes('examples')),
    ),
    [],
    'no sources that Node would not run under node_modules, no tests',
  )
})

test('in an empty folder the plugin passes its tests, typed by its declarations', async () => {
  cpSync(join(repository, 'test/examples/hello-partner'), partner, { recursive: true })
  symlinkSync(await installPlatform(), join(partner, 'node_modules'))
  const { stdout } = await run(process.execPath, ['--test', 'plugin.test.js'], partner)
  assert.match(stdout, /pass 8/)
  assert.match(stdout, /fail 0/)
  writeFileSync(
    join(partner, 'typed.ts'),
    `
import { definePlugin } from 'agent-platform/plugin'
import { contract } from 'agent-platform/contract'
import { Storage } from 'agent-platform/ports/storage'
import { Tools } from 'agent-platform/plugins/runs'
export default definePlugin({
  name: 'typed', version: '1.0.0', kernel: '^1.0.0', uses: { store: Storage, tools: Tools },
  contract: contract({ 'DELETE /typed': { summary: '', reply: 'none' } }),
  // @ts-expect-error a row without a handler
  routes: {},
})
`,
  )
  writeFileSync(
    join(partner, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        module: 'nodenext',
        target: 'es2024',
        lib: ['es2024', 'esnext.disposable'],
        types: [],
        skipLibCheck: true,
      },
      files: ['typed.ts'],
    }),
  )
  await run(
    process.execPath,
    [join(repository, 'node_modules/typescript/bin/tsc'), '-p', '.'],
    partner,
  ).catch((error: { stdout: string }) => assert.unreachable(error.stdout))
  for (const file of ['typed.ts', 'tsconfig.json']) rmSync(join(partner, file))
})

test('an agent calls its tool on a running server, through upgrade and rollback', async () => {
  const server = await startProcess(env)
  const { token } = await signUp(server.base, env, 100)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const plugins = (...args: string[]) =>
    commandLine<Record<string, unknown>>(['plugins', ...args], env)
  const greeted = async () => {
    const { run_id: id } = (await (
      await fetch(`${server.base}/chat`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ message: '[[tool=greet {"name":"World"}]]' }),
      })
    ).json()) as { run_id: string }
    const stream = await (await fetch(`${server.base}/runs/${id}/events`, { headers })).text()
    return (
      JSON.parse(/^event: tool_result\ndata: (.*)$/m.exec(stream)![1]!) as { content: string }
    ).content
  }
  const first = await plugins('add', await pack(partner, home))
  assert.equal(
    [first['name'], first['version'], first['state'], first['package']],
    ['hello', '1.0.0', 'serving', 'hello-partner'],
  )
  assert.match(first['integrity'] as string, /^sha512-/)
  assert.is(await greeted(), 'Good morning, World!')

  for (const file of ['package.json', 'plugin.js'])
    writeFileSync(
      join(partner, file),
      readFileSync(join(partner, file), 'utf8').replace('1.0.0', '2.0.0'),
    )
  writeFileSync(
    join(partner, 'greetings.js'),
    readFileSync(join(partner, 'greetings.js'), 'utf8').replace('${name}!', '${name}, again!'),
  )
  const second = await plugins('add', await pack(partner, home))
  assert.equal([second['version'], second['previous']], ['2.0.0', '1.0.0'])
  assert.is(await greeted(), 'Good morning, World, again!')

  assert.is((await plugins('rollback', 'hello'))['version'], '1.0.0')
  assert.is(await greeted(), 'Good morning, World!')
  await server.kill('SIGTERM')
  const again = await startProcess(env)
  assert.is(
    await greeted(),
    'Good morning, World!',
    'the version that was gone back to is the one that a restart serves',
  )

  await plugins('remove', 'hello')
  assert.match(await greeted(), /There is no tool "greet"/)
  const { code, err } = await runMain(['plugins', 'add', 'no-such-package-of-anybody@9.9.9'], env)
  assert.is(code, 1)
  assert.match(err, /npm could not install it/)
  await again.kill('SIGTERM')
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
