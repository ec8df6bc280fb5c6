// CPU in scaled seconds, the unit of the budgets: the same work has the same figure on any machine.

/** What `unit()` took on the machine that the budgets were measured on. */
const unitMs = 200
/** Two runs on one machine differ by less. */
const tolerance = 1.5

/** How many seconds of CPU on this machine a scaled second is. */
export function scaledSecond(): number {
  const unit = () => {
    const { user } = process.cpuUsage()
    let state = 1
    const seen = new Map<number, string>()
    for (let i = 0; i < 2_000_000; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      seen.set(state % 10_000, `${state}`)
    }
    return (process.cpuUsage().user - user) / 1000
  }
  return Math.max(1, Math.min(unit(), unit(), unit()) / unitMs) * tolerance
}
