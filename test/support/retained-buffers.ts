// What a stream holds of what has passed: buffers that are still in use, garbage left out.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const everyBytes = 8_388_608

/**
 * `most()`: the most that was held at once above what was held at first, in bytes; looked at after
 * every 8 MiB of `watched(source)`.
 */
export function retainedBuffers() {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const held = () => {
    // The second waits for what the first still frees beside.
    collect()
    collect()
    return process.memoryUsage().arrayBuffers
  }
  const first = held()
  let most = 0
  return {
    most: () => most,
    async *watched(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      let passed = 0
      for await (const part of source) {
        if (Math.floor(passed / everyBytes) !== Math.floor((passed += part.length) / everyBytes))
          most = Math.max(most, held() - first)
        yield part
      }
    },
  }
}
