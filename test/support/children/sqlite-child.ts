// A server that does nothing but write, to be killed: it says on its output which documents are on
// disk, or that a promise was broken.
import { systemClock } from '#adapters/clock/system.ts'
import storage from '#adapters/storage/sqlite.ts'
import { hasCode } from '#contracts/faults.ts'
import { opening } from '../../conformance/opening.ts'
import type { Collection } from '#ports/storage.ts'

const things: Collection = { name: 'things', scope: 'platform' }
const say = (line: string) => process.stdout.write(`${line}\n`)
const [path, pad = '100'] = process.argv.slice(2)
const engine = await storage.open(opening(`sqlite:${path}`, { clock: systemClock() }))
await engine.define(things)
await engine.durable()
say('open')
for (let at = 0; ; at += 10) {
  const epoch = engine.epoch!()
  try {
    await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        engine.insert(things, { id: `t${at + n}`, pad: 'x'.repeat(Number(pad)) } as { id: string }),
      ),
    )
    await engine.durable()
    for (let n = 0; n < 10; n++) say(`t${at + n}`)
  } catch (error) {
    say(
      `refused ${hasCode(error, 'STORAGE_FULL') || hasCode(error, 'UNAVAILABLE')} ` +
        `${epoch !== engine.epoch!()} ${(await engine.get(things, 't0'))?.id}`,
    )
    await engine.close()
    break
  }
}
