// Forks share the texts of their source. Whichever is removed, and whenever, the others keep their
// texts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Change, StorageEngine } from '#ports/storage.ts'
import { endEngines, lasting, startEngine } from '../../../test/support/engine.ts'
import { says } from '../../../test/support/scripted-model.ts'

type Update = StorageEngine['update']
type Remove = StorageEngine['remove']
type Meanwhile = {
  /** Before a copy inherits. */ inherits?(): Promise<unknown>
  /** Before a run is removed. */
  removes?(): Promise<unknown>
}

/**
 * A conversation with two forks. The action of a test happens once, in the middle of an operation.
 */
async function forked(words = 'one') {
  const { storage, eventlog } = lasting()
  const meanwhile: Meanwhile = {}
  const once = async (which: keyof Meanwhile): Promise<void> => {
    const act = meanwhile[which]
    delete meanwhile[which]
    await act?.()
  }
  const update = async (...[collection, id, change, options]: Parameters<Update>) => {
    if (collection.name === 'runs' && (change as Change).unset?.includes('source'))
      await once('inherits')
    return storage.update(collection, id, change, options)
  }
  const remove = async (...[collection, id, options]: Parameters<Remove>) => {
    if (collection.name === 'runs') await once('removes')
    return storage.remove(collection, id, options)
  }
  const engine = await startEngine(() => says('answer'), {
    given: { storage: { ...storage, update, remove }, eventlog },
  })
  const { token } = engine.who
  const call = async <T>(method: string, path: string, body?: object) =>
    (await engine.call(method, path, { token, ...(body ? { body } : {}) })).body as T
  const { run_id: run, session_id: source } = await engine.chat(words)
  await engine.read(run)
  await engine.closed(run)
  const fork = async () => (await call<{ id: string }>('POST', `/sessions/${source}/branch`, {})).id
  const drop = (id: string) => call('DELETE', `/sessions/${id}`)
  const told = async (id: string) =>
    (await call<{ items: { content: string }[] }>('GET', `/sessions/${id}/messages`)).items.map(
      ({ content }) => content,
    )
  return { source, forks: [await fork(), await fork()] as const, drop, told, meanwhile }
}

for (const [length, words] of [
  ['short', 'one'],
  ['long', `one ${'x'.repeat(100_000)}`],
] as const) {
  test(`the fork that was to have the texts goes while it inherits them (${length})`, async () => {
    const {
      source,
      forks: [first, second],
      drop,
      told,
      meanwhile,
    } = await forked(words)
    meanwhile.inherits = () => drop(first)
    await drop(source)
    assert.equal(await told(second), [words, 'answer'])
  })

  test(`a fork that goes has inherited since it was looked at (${length})`, async () => {
    const {
      source,
      forks: [first, second],
      drop,
      told,
      meanwhile,
    } = await forked(words)
    meanwhile.removes = () => drop(source)
    await drop(first)
    assert.equal(await told(second), [words, 'answer'])
  })
}

test.after(endEngines)
test.run()
