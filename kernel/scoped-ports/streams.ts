// Event streams, named within an organisation and within the plugin that writes them.
import { fault } from '#contracts/faults.ts'
import type { Eventlog, EventlogEngine, ScopedEventlog } from '#ports/eventlog.ts'
import type { Plugin } from '../plugin.ts'
import { durabilityOf, latestOf } from './organisation.ts'

/** Characters of an organisation's id and a slash, which precede each stream's name. */
const orgPrefixChars = 37

/**
 * Neither a plugin's name nor an unprefixed stream's name has a slash, so two names never clash.
 */
export function scopeEventlog(
  engine: EventlogEngine,
  { name, names }: Pick<Plugin, 'name' | 'names'>,
): ScopedEventlog {
  const within = (stream: string): string => {
    if (stream === '') throw fault('INVALID_FIELD', { field: 'stream', why: 'has no name' })
    if (names !== 'unprefixed') return `${name}/${stream}`
    if (stream.includes('/'))
      throw fault('INVALID_FIELD', { field: 'stream', why: 'has a slash in its name' })
    return stream
  }
  const { appendBytesMax, streamNameMax } = engine.limits
  const prefixChars = orgPrefixChars + within('x').length - 1
  return {
    ...durabilityOf(engine),
    limits: { appendBytesMax, streamNameMax: streamNameMax - prefixChars },
    tenant: latestOf((orgId): Eventlog => {
      const named = (stream: string) => `${orgId}/${within(stream)}`
      return {
        append: (stream, events, options) => engine.append(named(stream), events, options),
        read: (stream, options) => engine.read(named(stream), options),
        bounds: stream => engine.bounds(named(stream)),
        follow: (stream, options) => engine.follow(named(stream), options),
        trim: (stream, through) => engine.trim(named(stream), through),
        rewrite: (stream, range, events) => engine.rewrite(named(stream), range, events),
        remove: stream => engine.remove(named(stream)),
      }
    }),
  }
}
