// Pools of threads for arithmetic, and what ends them.
import { systemClock } from '#adapters/clock/system.ts'
import { createArithmeticPool } from '../../plugins/tools/arithmetic-pool.ts'

export function arithmeticPools() {
  const undo: (() => unknown)[] = []
  const reckonerOf = (more: object = {}, clock = systemClock()) =>
    createArithmeticPool({
      config: {
        calculator_ms: 5000,
        calculator_threads_max: 2,
        calculator_waiting_max: 100,
        calculator_memory_mb: 32,
        ...more,
      },
      clock,
      log: () => undefined,
      defer: one => undo.push(one),
    })
  return { undo, reckonerOf }
}
