// Which kit asks which port's adapters, and what it cannot ask of this one, with the reason.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { manualClock, type ManualClock } from '#adapters/clock/manual.ts'
import { systemClock } from '#adapters/clock/system.ts'
import type { Ledger } from '#ports/billing.ts'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Email, Mailer } from '#ports/mail.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { Queue } from '#ports/queue.ts'
import type { SearchEngine } from '#ports/search.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Tracer } from '#ports/traces.ts'
import { billingKit } from '../billing.ts'
import { blobsKit } from '../blobs.ts'
import { placeOf, type Parts } from './checked-place.ts'
import { clockKit } from '../clock.ts'
import { eventlogKit } from '../eventlog.ts'
import { limitsKit } from '../limits.ts'
import { mailKit } from '../mail.ts'
import { modelsKit } from '../models.ts'
import { queueKit } from '../queue.ts'
import type { Test } from '../runner.ts'
import { searchKit } from '../search.ts'
import { storageKit } from '../storage.ts'
import { tracesKit } from '../traces.ts'

/** What is told of a check that is not made. */
export type Unasked = (check: string, why: string) => void
type Kits = Readonly<
  Record<string, (test: Test, parts: Parts, unasked: Unasked) => void | Promise<void>>
>

/** Where the adapter's own declarations leave nothing to ask. */
const lost = ({ port, adapter }: Parts, unasked: Unasked) => {
  if (adapter.ephemeral)
    unasked(
      `${port}: what was durable is there after opening again`,
      'the adapter declares that what it keeps ends with the process',
    )
}
const single = ({ adapter: { exclusive, ephemeral, needs = [] } }: Parts): string | undefined => {
  if (exclusive) return 'the adapter declares that one process at a time has it open'
  return ephemeral && needs.length === 0
    ? 'what the adapter keeps is in one process, by its declaration'
    : undefined
}
const externalClock = ({ adapter }: Parts): string | undefined =>
  adapter.externalClock
    ? 'the adapter declares that it goes by a clock of its own, which a check cannot move'
    : undefined

/** A ledger's or a queue's place closes when its check has ended. */
const withClock = async <T>(parts: Parts, clock: ManualClock) => ({
  clock,
  ...(await placeOf<T>(parts, clock)),
})

export const kits: Kits = {
  storage: (test, parts, unasked) => {
    storageKit(test, 'storage', {
      survives: !parts.adapter.ephemeral,
      place: () => withClock<StorageEngine>(parts, manualClock()),
    })
    lost(parts, unasked)
  },
  eventlog: (test, parts, unasked) => {
    eventlogKit(test, 'eventlog', {
      survives: !parts.adapter.ephemeral,
      place: async () => {
        const at = await placeOf<EventlogEngine>(parts, systemClock())
        return {
          clean: at.clean,
          open: async () => {
            const log = await at.open()
            return { log, close: () => log.close() }
          },
        }
      },
    })
    lost(parts, unasked)
  },
  blobs: (test, parts, unasked) => {
    blobsKit(test, 'blobs', {
      survives: !parts.adapter.ephemeral,
      place: () => placeOf<BlobsEngine>(parts, systemClock()),
    })
    unasked('blobs: a full store refuses and stays whole', 'a full store cannot be made by a URL')
    lost(parts, unasked)
  },
  search: (test, parts, unasked) => {
    const exactStatistics =
      'the port does not promise it: an engine may count what was replaced until it tidies up'
    searchKit(test, 'search', {
      survives: !parts.adapter.ephemeral,
      lacks: { another: single(parts), exactStatistics },
      unasked,
      place: () => placeOf<SearchEngine>(parts, systemClock()),
    })
    lost(parts, unasked)
  },
  billing: (test, parts, unasked) =>
    billingKit(test, 'billing', {
      lacks: { another: single(parts) },
      unasked,
      place: async () => {
        const at = await placeOf<Ledger>(parts, systemClock())
        return { ...at, another: at.open }
      },
    }),
  queue: (test, parts, unasked) => {
    const rides = (parts.adapter.needs ?? []).some(name => name !== 'clock')
    const crash = rides
      ? undefined
      : 'a crash is played by engines below it that answer no more; it rides on none'
    queueKit(test, 'queue', {
      lacks: { time: externalClock(parts), another: single(parts), crash },
      unasked,
      place: async () => {
        const at = await withClock<Queue>(parts, manualClock())
        return {
          ...at,
          another: async () => {
            const { engine: queue, die } = await at.crashable()
            return { queue, die }
          },
        }
      },
    })
  },
  limits: (test, parts, unasked) =>
    limitsKit(test, 'limits', {
      lacks: { time: externalClock(parts) },
      unasked,
      open: async () => {
        const { clock, open, clean } = await withClock<RateLimiter>(parts, manualClock())
        return { limits: await open(), pass: ms => clock.advance(ms), clean }
      },
    }),
  mail: async (test, parts, unasked) => {
    const probe = await placeOf<Mailer>(parts, systemClock())
    const mailer = await probe.open()
    const hasLetters = 'letters' in mailer
    await mailer.close()
    await probe.clean()
    const letters =
      hasLetters || parts.letters !== undefined
        ? undefined
        : 'what it sends cannot be read back; --letters <folder> says where it arrives as ' +
          '.eml files'
    mailKit(test, 'mail', {
      lacks: { letters },
      unasked,
      place: async () => {
        const at = await placeOf<Mailer>(parts, manualClock())
        const folder = parts.letters === undefined ? undefined : at.marked(parts.letters)
        const arrived = () =>
          folder !== undefined && existsSync(folder)
            ? readdirSync(folder).filter(name => name.endsWith('.eml'))
            : []
        const before = arrived()
        let last: (Mailer & { letters?: readonly Email[] }) | undefined
        return {
          clean: at.clean,
          open: async () => (last = await at.open()),
          received: async () =>
            folder === undefined
              ? [...(last?.letters ?? [])]
              : arrived()
                  .filter(name => !before.includes(name))
                  .map(name => readFileSync(join(folder, name), 'utf8')),
        }
      },
    })
  },
  traces: async (test, parts, unasked) => {
    const open = async () => (await placeOf<Tracer>(parts, systemClock())).open()
    const probe = await open()
    const isTraced = await probe.span(
      'probe',
      {},
      async ({ traceparent }) => traceparent !== undefined,
    )
    await probe.close()
    tracesKit(test, 'traces', {
      open: async () => ({ tracer: await open() }),
      lacks: {
        traced: isTraced ? undefined : 'it traces nothing: its spans have no traceparent',
        received: 'what arrives at a collector cannot be read back there',
      },
      unasked,
    })
  },
  // A clock that can be told to move is told; with any other the check waits.
  clock: (test, parts) =>
    clockKit(test, 'clock', {
      open: async () => (await placeOf<Clock>(parts, systemClock())).open(),
      pass: (clock, ms) => ('advance' in clock ? (clock as ManualClock).advance(ms) : wait(ms)),
    }),
  models: async (test, parts, unasked) => {
    const open = async () => (await placeOf<ModelProvider>(parts, systemClock())).open()
    const provider = await open()
    const supports = (await provider.catalogue()).find(({ isDefault }) => isDefault)?.supports
    await provider.close()
    modelsKit(test, 'models', {
      open,
      long: 'Tell me a long story of about five hundred words.',
      ...(supports?.tools
        ? { tool: 'Call the tool add with the argument a = 1. [[tool=add {"a":1}]]' }
        : {}),
    })
    for (const [name, does] of Object.entries(supports ?? {}))
      if (!does) unasked(`models: ${name}`, 'its default model declares that it does not')
  },
}
