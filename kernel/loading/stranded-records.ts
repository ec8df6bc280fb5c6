// Live records of a version that serves, which the next set of plugins could not read.
import type { Instance } from './instance.ts'
import type { Plugin } from '../plugin.ts'
import type { Steps } from './steps.ts'

/**
 * Refuses a change that would strand live records: the new version must read the old version's
 * formats, unless none are live.
 */
export async function refuseStranding(
  serving: Iterable<Instance>,
  nextPlugins: readonly Plugin[],
  within: Steps['within'],
): Promise<void> {
  for (const { plugin, cradle } of serving) {
    const { name, records } = plugin
    const next = nextPlugins.find(one => one.name === name)
    const reads = (format: string) => next?.records?.reads.includes(format)
    if (!records || next === plugin || records.reads.every(reads)) continue
    const live = await within(`counting the records of ${name}`, () =>
      records.live(cradle as never),
    )
    for (const [format, count] of Object.entries(live)) {
      if (count === 0 || reads(format)) continue
      const fails = next
        ? `${next.name} ${next.version} cannot read`
        : `Without ${name} nobody reads`
      throw new Error(`${fails} ${format}, which ${count} live ${records.of} hold.`)
    }
  }
}
