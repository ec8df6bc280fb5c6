// A plugin that is for some organisations only: to others it is not there.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { contract } from '#contracts/contract.ts'
import { definePlugin, into } from '#kernel'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { Agents, Tools } from '../../plugins/runs/api.ts'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

const guest = definePlugin({
  name: 'guest',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: contract({
    'GET /guest': { summary: 'Mine', reply: t.Object({}) },
    'GET /guest/public': { summary: 'For anybody', auth: 'public', reply: t.Object({}) },
  }),
  routes: { 'GET /guest': () => ({}), 'GET /guest/public': () => ({}) },
  contributes: [
    into(Tools, () => ({
      name: 'secret_handshake',
      description: 'For those who know.',
      parameters: t.Object({}),
      effect: 'none' as const,
      run: () => ({ content: 'known' }),
    })),
    into(Agents, () => ({ key: 'insider', name: 'Insider', instruction: 'Be one.' })),
  ],
})

test('a limited plugin is unknown and not offered to others until it is for all', async () => {
  const server = await startServer({ plugins: [...(await loadPlugins()), guest] })
  const ours = await server.account()
  const theirs = await server.account()
  const get = async (path: string, token?: string) =>
    (await server.call('GET', path, { token })).status
  const handshake = async (token: string) => {
    const { body } = await server.call('POST', '/chat', {
      token,
      body: { message: '[[tool=secret_handshake {}]]' },
    })
    const result = (
      await readEvents(await server.stream(token, (body as { run_id: string }).run_id))
    ).find(({ event }) => event === 'tool_result')
    return result!.data['content']
  }
  const insider = async (token: string) =>
    (await server.call('POST', '/chat', { token, body: { message: 'hi', app_name: 'insider' } }))
      .status
  const everywhere = async (isForAll: boolean) => {
    assert.equal(
      [await get('/guest', ours.token), await insider(ours.token), await handshake(ours.token)],
      [200, 200, 'known'],
    )
    assert.equal(
      [await get('/guest', theirs.token), await insider(theirs.token), await get('/guest/public')],
      isForAll ? [200, 200, 200] : [404, 404, 404],
    )
    if (isForAll) assert.is(await handshake(theirs.token), 'known')
    else
      assert.match((await handshake(theirs.token)) as string, /There is no tool "secret_handshake"/)
  }
  await everywhere(true)
  assert.equal((await server.pluginRegistry.enable('guest', [ours.org_id])).organisations, [
    ours.org_id,
  ])
  await everywhere(false)
  assert.is((await server.pluginRegistry.enable('guest', null)).organisations, null)
  await everywhere(true)
  await server.stop()
})

test.run()
