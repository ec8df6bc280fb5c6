// How the parts are, asked at most once in a while however many ask: some of them open a connection
// to say so.
import type { Check, KernelInfo } from '#kernel'
import type { Clock } from '#ports/clock.ts'

export function createReadiness({
  host,
  clock,
  config,
}: {
  host: KernelInfo
  clock: Clock
  config: { ready_cache_ms: number }
}) {
  let asked: Promise<readonly Check[]> | undefined
  let freshUntil = -Infinity
  return {
    /**
     * The same answer for everybody who asks while it is being found out, and for a while after.
     */
    checks(): Promise<readonly Check[]> {
      if (asked && clock.monotonic() < freshUntil) return asked
      // Until it is there, nobody asks again.
      freshUntil = Infinity
      return (asked = host.health().finally(() => {
        freshUntil = clock.monotonic() + config.ready_cache_ms
      }))
    },
  }
}
