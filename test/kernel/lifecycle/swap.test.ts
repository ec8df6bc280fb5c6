// Load, swap, drain and stop, on the real kernel with small plugins.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { greeter, speaker, using } from './greeter.ts'

test('plugins are built in the order of their needs, whatever order they are given in', () =>
  using([speaker(), greeter('hi')], async ({ call }) => {
    assert.equal((await call('GET', '/hello')).body, { text: 'hi', words: ['hi'] })
  }))

test('a new generation rebuilds its dependents and undoes the old in reverse', async () => {
  const trace: string[] = []
  await using([greeter('one', trace), speaker()], async ({ call, kernel }) => {
    const [, dependent] = kernel.host.plugins()
    await (await kernel.applyPlugins([greeter('two', trace), speaker()])).drained
    assert.equal((await call('GET', '/hello')).body, { text: 'two', words: ['two'] })
    assert.equal(trace, ['start one', 'start two', 'undo second of one', 'undo first of one'])
    assert.ok(
      kernel.host.plugins().find(({ name }) => name === 'speaker')!.generation >
        dependent!.generation,
    )
  })
})

test('a plugin that is the same value is not touched', async () => {
  const same = greeter('same')
  await using([same], async ({ kernel }) => {
    const before = kernel.host.plugins()
    await kernel.applyPlugins([same])
    assert.equal(kernel.host.plugins(), before)
  })
})

test('a call under way ends on the generation that began it', async () => {
  let release = () => {}
  const gate = new Promise<void>(open => {
    release = open
  })
  const old = greeter('old')
  await using([old, speaker([], () => gate)], async ({ call, kernel }) => {
    const answer = call('GET', '/hello')
    await new Promise(resolve => setTimeout(resolve, 50))
    const change = kernel.applyPlugins([greeter('new'), speaker()])
    await new Promise(resolve => setTimeout(resolve, 50))
    assert.is(
      ((await call('GET', '/hello')).body as { text: string }).text,
      'new',
      'new calls meet the new generation',
    )
    release()
    assert.is(((await answer).body as { text: string }).text, 'old')
    await (await change).drained
  })
})

test('routes come and go with their plugin', () =>
  using([greeter('hi'), speaker()], async ({ call, kernel }) => {
    await kernel.applyPlugins([greeter('hi')])
    const gone = await call('GET', '/hello')
    assert.is(gone.status, 404)
    assert.match(
      (gone.body as { detail: string }).detail,
      /There is no operation GET \/api\/v1\/hello/,
    )
    await kernel.applyPlugins([greeter('hi'), speaker()])
    assert.is((await call('GET', '/hello')).status, 200)
  }))

test('500 calls during 20 reloads: none is dropped, none meets a half-state', () =>
  using([greeter('0'), speaker()], async ({ call, kernel }) => {
    let reloads = 0
    let going = true
    const load = Promise.all(
      Array.from({ length: 5 }, async () => {
        let calls = 0
        while (going || calls < 100) {
          const { status, body } = await call('GET', '/hello')
          const { text, words } = body as { text: string; words: string[] }
          assert.is(status, 200)
          assert.is(words.length, 1)
          assert.ok(Number(text) <= 20)
          calls++
          if (calls > 400) break
        }
      }),
    )
    while (reloads < 20) await kernel.applyPlugins([greeter(String(++reloads)), speaker()])
    going = false
    await load
  }))

test.run()
