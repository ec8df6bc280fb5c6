// Like all tests of this repository it uses uvu, which runs nothing before `test.run()`.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluginConformance, testPlugin } from '../../conformance/plugin/harness.ts'
import plugin from './plugin.ts'

pluginConformance(test, {
  path: import.meta.dirname,
  fixtures: {
    memo: async ({ call }, { token }) =>
      ((await call('POST', '/memos', { token, body: { text: 'mine' } })).body as { id: string }).id,
  },
})

test('a memo is kept, listed and removed', async () => {
  const { call, account, stop } = await testPlugin(plugin)
  const { token } = await account()
  const { body: kept } = await call('POST', '/memos', { token, body: { text: 'milk' } })
  const texts = async () =>
    ((await call('GET', '/memos', { token })).body as { items: { text: string }[] }).items.map(
      ({ text }) => text,
    )
  assert.equal(await texts(), ['milk'])
  assert.is((await call('DELETE', `/memos/${(kept as { id: string }).id}`, { token })).status, 204)
  assert.equal(await texts(), [])
  await stop()
})

test.run()
