// The command that copies an installation: its clock, and which ports it opens.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { Clock } from '#ports/clock.ts'
import { copyInstallation } from './command.ts'
import {
  clock,
  copying,
  empty,
  filled,
  Short,
  type FullSide,
} from '../../../test/support/installation/copy-kit.ts'

test("what expires during the copy is copied, by the command's own clock", async () => {
  const from = await filled()
  const lines: string[] = []
  const own = manualClock(clock.now())
  let seen: Clock = own
  let advanced: Promise<void> | undefined
  const storages = [
    memoryStorage({ ...own, now: () => seen.now() }),
    memoryStorage({ ...own, now: () => seen.now() }),
  ]
  const sides = [...storages]
  await copying(from, { ...empty(), storage: storages[0]! })
  const tools: Parameters<typeof copyInstallation>[0] = {
    settings: { QUEUE_URL: 'storage:' },
    placeOf: (port, chosen) => (port === 'storage' ? chosen.STORAGE_URL! : 'memory:'),
    async bind(_, only, given = {}) {
      if (given['clock']) seen = given['clock'] as Clock
      const engine = only[0] === 'clock' ? own : sides.shift()
      return { engine: <T>() => engine as T, close: async () => undefined }
    },
    tell(line) {
      lines.push(line)
      if (line.startsWith('copied the documents')) advanced = own.advance(1000)
    },
  }
  const places = { from: 'one://user:hidden-word@here/a', to: 'two://there/b' }
  const { ok, compared, stays, from: told } = await copyInstallation(tools, places)
  assert.equal(
    [ok, compared.find(({ name }) => name === 'short')],
    [true, { ...compared.find(({ name }) => name === 'short')!, source: 2, target: 2, same: true }],
  )
  assert.ok(stays.includes('blobs memory:') && lines[0]!.startsWith('No process may serve'))
  assert.is(told, 'storage one://here/a', 'neither user nor password')
  await advanced
  seen = own
  assert.is(await storages[1]!.count(Short), 1, 'then it expires')
})

test('the search index moves if its place differs, else the copy says that it stays', async () => {
  const run = async (more: object) => {
    const sides = [await filled(), empty()]
    const opened: string[][] = []
    const tools: Parameters<typeof copyInstallation>[0] = {
      settings: { QUEUE_URL: 'storage:' },
      placeOf: (port, chosen) =>
        port === 'storage'
          ? chosen.STORAGE_URL!
          : (port === 'search' && chosen.SEARCH_URL) || 'memory:',
      async bind(_, only) {
        if (only[0] === 'clock')
          return { engine: <T>() => clock as T, close: async () => undefined }
        const side = sides[opened.push([...only]) - 1]!
        return {
          engine: <T>(name: string) => side[name as keyof FullSide] as T,
          close: async () => undefined,
        }
      },
      tell: () => undefined,
    }
    const { compared, stays, to } = await copyInstallation(tools, {
      from: 'one:',
      to: 'two:',
      ...more,
    })
    return {
      opened,
      passages: compared.find(({ what }) => what === 'passages')?.target,
      stays: stays.includes('search memory:'),
      to,
    }
  }
  assert.equal(await run({}), {
    opened: [['storage'], ['storage']],
    passages: undefined,
    stays: true,
    to: 'storage two:',
  })
  for (const more of [
    { search_to: 'found://user:hidden-word@there/x' },
    { search_from: 'memory:', search_to: 'found://there/x' },
  ])
    assert.equal(await run(more), {
      opened: [
        ['storage', 'search'],
        ['storage', 'search'],
      ],
      passages: 231,
      stays: false,
      to: 'storage two:, search found://there/x',
    })
  assert.is((await run({ search_from: 'found:', search_to: 'found:' })).passages, undefined)
})

test.run()
