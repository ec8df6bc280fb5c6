// What every search adapter promises. `survives`: what was indexed is there after closing and
// opening again. `another`: two processes have the place open.
import assert from 'node:assert/strict'
import { asking, refuses, type Lacking, type Test, withPlace } from './runner.ts'
import { changes } from './search/changes.ts'
import {
  emptied,
  idsOf,
  index,
  mixed,
  ownOrg,
  type On,
  type SearchNeed,
  type SearchPlace,
} from './search/common.ts'
import { contentsOf } from './search/contents.ts'
import { filters } from './search/filters.ts'
import { indexing } from './search/indexing.ts'
import { languages } from './search/languages.ts'
import { matching } from './search/matching.ts'
import { organisations } from './search/organisations.ts'
import { ranking } from './search/ranking.ts'
import { refusals } from './search/refusals.ts'

type Kit = Lacking<SearchNeed> & { place: () => Promise<SearchPlace>; survives: boolean }

export function searchKit(test: Test, name: string, { place, survives, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, run, needs = []) =>
    ask(
      `${name}: ${title}`,
      needs,
      withPlace(place, async (engine, at) => {
        // An adapter that waits before another try keeps no process alive for that.
        const awake = setInterval(() => undefined, 1000)
        try {
          await run(engine.within(ownOrg), engine, at)
          await emptied(engine)
        } finally {
          clearInterval(awake)
        }
      }),
    )
  indexing(on)
  filters(on)
  organisations(on)
  refusals(on)
  ranking(on)
  languages(on)
  matching(on)
  changes(on)
  contentsOf(on)
  states(test, name, { place, survives })
}

function states(test: Test, name: string, { place, survives }: Kit): void {
  test(`${name}: closed, it refuses everything; opened again, it has what it had`, async () => {
    const at = await place()
    const engine = await at.open()
    await engine.ping()
    const passages = engine.within(ownOrg)
    await passages.define('c', mixed)
    await index(passages, 'c', [{ id: 'a', text: 'kept', vector: [1, 0, 0], fields: { page: 1 } }])
    await engine.ping()
    await engine.close()
    await engine.close()
    for (const call of [
      () => passages.define('c', mixed),
      () => passages.drop('c'),
      () => passages.collections(),
      () => passages.index('c', [{ id: 'a', text: 'x' }]),
      () => passages.remove('c', { ids: ['a'] }),
      () => passages.query('c', { text: 'x' }),
      () => passages.count('c'),
      () => engine.addresses({ limit: 1 }),
      () => engine.contents(ownOrg, 'c', { limit: 1 }),
      () => engine.ping(),
      () => engine.within(ownOrg),
    ])
      await refuses('UNAVAILABLE', call)
    const again = await at.open()
    const there = again.within(ownOrg)
    if (survives) {
      assert.deepEqual(
        await idsOf(there, 'c', { text: 'kept', vector: [1, 0, 0], where: { page: 1 } }),
        ['a'],
      )
      await there.define('c', mixed)
      assert.equal(await there.count('c'), 1)
    } else await refuses('NOT_FOUND', () => there.count('c'))
    await emptied(again)
    await again.close()
    await at.clean?.()
  })
}
