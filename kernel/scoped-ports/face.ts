// Scoped ports: no query without an organisation, and nothing beyond what a plugin declares.
import type { Ledger } from '#ports/billing.ts'
import type { BlobsEngine, ScopedBlobs } from '#ports/blobs.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Mailer } from '#ports/mail.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { Queue } from '#ports/queue.ts'
import type { SearchEngine } from '#ports/search.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Tracer } from '#ports/traces.ts'
import type { Plugin } from '../plugin.ts'
import {
  declaredBilling,
  declaredLimits,
  declaredMail,
  declaredModels,
  declaredQueue,
  declaredTraces,
  type MailWait,
} from './declared.ts'
import { orgOf } from './organisation.ts'
import { scopeSearch } from './passages.ts'
import { scopeStorage } from './storage.ts'
import { scopeEventlog } from './streams.ts'

export const scopeBlobs = (engine: BlobsEngine): ScopedBlobs => ({
  tenant: scope => engine.within(orgOf(scope)),
})

/** The port as one plugin sees it. Only the clock is the same for all. */
export function scopedPort(
  portId: string,
  engine: unknown,
  plugin: Plugin,
  mailWait: MailWait = () => 0,
): unknown {
  switch (portId) {
    case 'port:storage':
      return scopeStorage(engine as StorageEngine, plugin)
    case 'port:eventlog':
      return scopeEventlog(engine as EventlogEngine, plugin)
    case 'port:blobs':
      return scopeBlobs(engine as BlobsEngine)
    case 'port:search':
      return scopeSearch(engine as SearchEngine, plugin)
    case 'port:billing':
      return declaredBilling(engine as Ledger, plugin)
    case 'port:queue':
      return declaredQueue(engine as Queue, plugin)
    case 'port:mail':
      return declaredMail(engine as Mailer, plugin, mailWait)
    case 'port:models':
      return declaredModels(engine as ModelProvider, plugin)
    case 'port:limits':
      return declaredLimits(engine as RateLimiter, plugin)
    case 'port:traces':
      return declaredTraces(engine as Tracer, plugin)
    default:
      return engine
  }
}
