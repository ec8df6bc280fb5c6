// What a plugin contributes to others' points comes and goes while runs are under way.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { called, calls, scriptedModel, resultsIn, says } from '../support/scripted-model.ts'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-points-'))
const folder = join(home, 'versioned')
/**
 * The plugin's way to tell the test that its tool is inside, and to wait there: the test and it
 * share a process.
 */
const gate = Object.assign(globalThis, {
  versionedTool: { entered: () => {}, leave: Promise.resolve(), undone: [] as string[] },
}).versionedTool

function write(version: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'plugin.js'),
    `
import { definePlugin, into } from 'agent-platform/plugin'
import { Tools } from 'agent-platform/plugins/runs'
export default definePlugin({
  name: 'versioned', version: '${version}', kernel: '^1.0.0',
  contributes: [into(Tools, () => ({
    name: 'version', description: 'Says its version.', effect: 'none',
    parameters: { type: 'object', properties: {} },
    async run() {
      globalThis.versionedTool.entered()
      await globalThis.versionedTool.leave
      return { content: '${version}, undone before: ' + globalThis.versionedTool.undone.join() }
    },
  }))],
  start: ({ defer }) => defer(() => globalThis.versionedTool.undone.push('${version}')),
})`,
  )
}

test("a call under way ends on a tool's old version; the run's next step has the new", async () => {
  const model = scriptedModel(request =>
    resultsIn(request).length < 2
      ? calls(called(`c${resultsIn(request).length}`, 'version'))
      : says('done'),
  )
  const server = await startServer({
    given: { models: model.provider },
    env: { DRAIN_MS: '10000' },
  })
  const { token } = await server.account()
  write('1.0.0')
  await server.pluginRegistry.load(folder)
  const inside = Promise.withResolvers<void>()
  const leave = Promise.withResolvers<void>()
  gate.entered = inside.resolve
  gate.leave = leave.promise
  const { run_id: id } = (
    await server.call('POST', '/chat', { token, body: { message: 'Which?' } })
  ).body as { run_id: string }
  const reading = readEvents(await server.stream(token, id))
  await inside.promise
  write('2.0.0')
  assert.is(
    (await server.pluginRegistry.reload('versioned')).version,
    '2.0.0',
    'the new version serves while the call is inside the old one',
  )
  assert.equal(gate.undone, [], 'and the old one is not undone under it')
  leave.resolve()
  const events = await reading
  assert.equal(
    events.filter(({ event }) => event === 'tool_result').map(({ data }) => data['content']),
    ['1.0.0, undone before: ', '2.0.0, undone before: 1.0.0'],
  )
  assert.is(events.at(-1)!.data['status'], 'done')
  await server.pluginRegistry.unload('versioned')
  const { run_id: late } = (
    await server.call('POST', '/chat', { token, body: { message: 'Which?' } })
  ).body as { run_id: string }
  const [result] = (await readEvents(await server.stream(token, late))).filter(
    ({ event }) => event === 'tool_result',
  )
  assert.match(result!.data['content'] as string, /There is no tool "version"/)
  await server.stop()
})

test.after(() => rmSync(home, { recursive: true, force: true }))
test.run()
