// The CPU of this process and of its children that have ended.
import { readFileSync } from 'node:fs'

/** Linux counts in hundredths of a second; see proc_pid_stat(5), fields 16 and 17. */
const tickMs = 10

/** Milliseconds of CPU, user and system. Elsewhere than on Linux, children are not counted. */
export function cpuOf(): number {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1000
  if (process.platform !== 'linux') return own
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const [children = 0, inSystem = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(13, 15)
    .map(Number)
  return own + (children + inSystem) * tickMs
}
