// The organisation of a scope, which every scoped port needs.
import type { Durable } from '#ports/token.ts'

const orgPattern = /^[0-9a-f-]{36}$/

/** Throws without an organisation, so that no query runs without one. */
export function orgOf(scope: { readonly orgId: string } | undefined): string {
  const orgId: unknown = scope?.orgId
  if (typeof orgId !== 'string' || !orgPattern.test(orgId))
    throw new Error('A query was asked for without an organisation.')
  return orgId
}

export const durabilityOf = (engine: Durable): Required<Durable> => ({
  durable: () => engine.durable(),
  epoch: () => engine.epoch?.() ?? 0,
})

/**
 * What is made for an organisation, the latest one's kept: a request asks for its own again and
 * again.
 */
export function latestOf<T>(make: (orgId: string) => T): (scope: { readonly orgId: string }) => T {
  let latest: { readonly orgId: string; readonly made: T } | undefined
  return scope => {
    const orgId = orgOf(scope)
    if (latest?.orgId !== orgId) latest = { orgId, made: make(orgId) }
    return latest.made
  }
}
