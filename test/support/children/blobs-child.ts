// A process that puts what another puts too: `blobs-child.ts <url> <organisation> <bytes> <times>`,
// begun by a line on standard input. It answers with a line of JSON, the hash of each.
import { once } from 'node:events'
import { systemClock } from '#adapters/clock/system.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import { loadAdapter } from '../../../kernel/adapters.ts'
import { opening } from '../../conformance/opening.ts'

const [url, orgId, bytes, times] = process.argv.slice(2)
const { adapter } = await loadAdapter('blobs', 'url', url!, [])
const engine = (await adapter.open(
  opening(url!, {
    clock: systemClock(),
    dataDir: process.env['DATA_DIR'] ?? '/',
    secret: name => process.env[name],
  }),
)) as BlobsEngine
/** The n-th content is the same in every process. */
async function* content(n: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < Number(bytes); at += 100_000)
    yield Buffer.alloc(Math.min(100_000, Number(bytes) - at), n + 1)
}
process.stdout.write('ready\n')
await once(process.stdin, 'data')
const put = await Promise.all(
  Array.from({ length: Number(times) }, (_, n) => engine.within(orgId!).put(content(n))),
)
process.stdout.write(`${JSON.stringify(put.map(({ hash }) => hash))}\n`)
await engine.close()
process.stdin.destroy()
