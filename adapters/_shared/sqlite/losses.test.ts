// What a crash, a full disk and a failed commit leave of what was written.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { collection } from '#ports/storage.ts'
import { refuses } from '../../../test/conformance/runner.ts'
import { onPlace, opened, pad, sound, things } from '../../../test/support/databases/sqlite-file.ts'
import { sharedWriter } from './sharing.ts'

const child = fileURLToPath(
  new URL('../../../test/support/children/sqlite-child.ts', import.meta.url),
)
const turn = () => new Promise(resolve => setImmediate(resolve))
const withPlace = onPlace(test)

withPlace(
  'kill -9 in mid-write keeps every write whose durable() resolved, and frees the lock',
  async place => {
    const writing = spawn(process.execPath, [child, place.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said: string[] = []
    const exited = new Promise(resolve => writing.once('exit', resolve))
    for await (const line of createInterface(writing.stdout)) {
      said.push(line)
      if (said.length === 1)
        assert.match(await refuses('UNAVAILABLE', () => place.open()), /another server has it open/)
      if (said.length > 400) writing.kill('SIGKILL')
    }
    await exited
    assert.is(writing.signalCode, 'SIGKILL')
    const engine = await opened(place)
    for (const id of said.slice(1)) assert.ok(await engine.get(things, id), id)
    await engine.close()
    await sound(place.path)
  },
)

withPlace(
  'a full disk: refused as such, what was on disk stays, and all goes on when there is room again',
  async place => {
    const engine = await opened(place, '?bytes_max=400000')
    const epoch = engine.epoch!()
    const kept: string[] = []
    let failure: unknown
    for (let n = 0; failure === undefined && n < 1000; n++) {
      try {
        await engine.insert(things, { id: `t${n}`, pad })
        await engine.durable()
        kept.push(`t${n}`)
      } catch (error) {
        failure = error
      }
    }
    assert.ok(hasCode(failure, 'STORAGE_FULL'), String(failure))
    assert.ok(kept.length > 50)
    assert.is(await engine.count(things), kept.length)
    await engine.remove(things, kept.pop()!)
    await engine.durable()
    await engine.insert(things, { id: 'fits' })
    await engine.remove(things, 'fits')
    await engine.durable()
    // The write is applied, then lost with its transaction, which the next write overfills. Waiters
    // are told. Many counts keep the thread busy, so `after` is sent before the loss is known.
    const busy = Promise.all(Array.from({ length: 300 }, () => engine.count(things, { pad: 'y' })))
    const small = engine.insert(things, { id: 'small' })
    const large = engine.insertMany(
      things,
      Array.from({ length: 50 }, (_, n) => ({ id: `l${n}`, pad })),
    )
    const durable = engine.durable()
    await turn()
    const after = engine.insert(things, { id: 'after' })
    await busy
    const outcomes = await Promise.allSettled([small, large, durable, after])
    assert.equal(
      outcomes.map(
        one =>
          one.status === 'rejected' &&
          (one.reason as Error).message.replace(/.*(lost|full).*/, '$1'),
      ),
      ['full', 'full', 'lost', 'lost'],
    )
    assert.is.not(engine.epoch!(), epoch)
    assert.is(await engine.get(things, 'small'), undefined)
    await engine.durable()
    await sharedWriter(engine)!.write(['quota', 1_000_000], () => undefined)
    await engine.insert(things, { id: 'small' })
    await engine.insertMany(
      things,
      Array.from({ length: 50 }, (_, n) => ({ id: `l${n}`, pad })),
    )
    await engine.durable()
    assert.is(await engine.count(things), kept.length + 51)
    await engine.close()
    await sound(place.path)
  },
)

withPlace(
  'a loss drops what was remembered of streams and of tables made in the lost transaction',
  async place => {
    const engine = await opened(place)
    const log = await place.openLog(engine)
    const writer = sharedWriter(engine)!
    await log.append('a', [{ type: 'x', data: 1 }])
    await engine.durable()
    await log.append('a', [{ type: 'x', data: 2 }])
    const young = collection({ name: 'young', scope: 'platform' })
    await engine.define(young)
    await writer.write(['quota', 1], () => undefined)
    const lost = await Promise.allSettled([
      log.append('b', [{ type: 'x', data: pad.repeat(200) }]),
      log.durable(),
    ])
    assert.equal(
      lost.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    await writer.write(['quota', 1_000_000], () => undefined)
    assert.equal(await log.bounds('a'), { first: 1, last: 1 })
    assert.is(await log.append('a', [{ type: 'x', data: 3 }], { expect: 1 }), 2)
    await engine.insert(young, { id: 'a' })
    await engine.durable()
    await engine.close()
    await sound(place.path)
  },
)

withPlace(
  'a commit that fails (no room for the log) is told to whoever waits for it',
  async place => {
    // A limit on file sizes plays a full disk. Its signal is ignored, so that the write itself
    // fails.
    const script = 'trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"'
    const writing = spawn('sh', ['-c', script, process.execPath, child, place.path, '3000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = await Array.fromAsync(createInterface(writing.stdout))
    assert.is(said.at(-1), 'refused true true t0')
    const engine = await opened(place)
    const durable = said.slice(1, -1)
    assert.ok(durable.length > 50)
    for (const id of durable) assert.ok(await engine.get(things, id), id)
    await engine.close()
    await sound(place.path)
  },
)

test.run()
