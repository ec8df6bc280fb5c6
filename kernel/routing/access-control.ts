// Who calls, whether the plugin serves them, and how often they may call: of a request, and again
// of a stream that stays open.
import type { Caller, WireEvent, WireEvents } from '#contracts/contract.ts'
import { fault } from '#contracts/faults.ts'
import { addressGroup } from '#ports/address.ts'
import type { HttpRequest } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Endpoint } from './endpoint.ts'
import type { Authenticator } from '../plugin.ts'
import type { OpenStreams } from './open-streams.ts'

export type AccessParts = {
  readonly authenticators: () => readonly Authenticator[]
  /** Does the plugin serve this organisation, or (undefined) everybody? */
  readonly isEnabled: (plugin: string, orgId: string | undefined) => boolean
  readonly limiter: RateLimiter
  readonly streams: OpenStreams
}

export function createAccessControl({ authenticators, isEnabled, limiter, streams }: AccessParts) {
  const authenticate = async (
    { operation }: Endpoint,
    request: HttpRequest,
  ): Promise<Caller | undefined> => {
    const kind = operation.auth ?? 'user'
    if (kind === 'public') return undefined
    for (const each of authenticators()) {
      const caller = each.kind === kind ? await each.authenticate(request.headers) : undefined
      if (caller) return caller
    }
    throw kind === 'user' ? fault('UNAUTHENTICATED') : fault('CREDENTIAL_REFUSED', { kind })
  }
  /** A plugin that does not serve the caller's organisation is unknown to it. */
  const checkEnabled = (
    { instance }: Endpoint,
    request: HttpRequest,
    caller: Caller | undefined,
  ): void => {
    if (!isEnabled(instance.plugin.name, caller?.orgId))
      throw fault('ROUTE_NOT_FOUND', { method: request.method, path: request.route })
  }
  const limit = async (
    { operation, instance }: Endpoint,
    subject: { user: string | undefined; address: string },
  ) => {
    if (!operation.limit) return
    const { name, by } = operation.limit
    const wait = await limiter.take(
      name,
      subject[by] ?? addressGroup(subject.address),
      instance.rates[name]!,
    )
    if (wait > 0)
      throw fault(
        'RATE_LIMITED',
        { limit: name, seconds: Math.ceil(wait / 1000) },
        { retryAfterMs: wait },
      )
  }
  /** Keeps a stream open only while its caller could request it again. */
  const guardOf =
    (endpoint: Endpoint, request: HttpRequest, caller: Caller | undefined) =>
    (events: WireEvents): WireEvents => {
      if (Array.isArray(events)) return events
      const check = async () => {
        const today = await authenticate(endpoint, request)
        if (today?.orgId !== caller?.orgId) throw fault('UNAUTHENTICATED')
        checkEnabled(endpoint, request, today)
      }
      return streams.guard(events as AsyncIterable<readonly WireEvent[]>, {
        userId: caller?.userId,
        check,
        signal: request.signal,
      })
    }
  return { authenticate, checkEnabled, limit, guardOf }
}
