// What every scoped port asks first: whose organisation?
import type { Durable } from '#ports/token.ts'

const orgPattern = /^[0-9a-f-]{36}$/

/** Fails closed: without an organisation there is no query. */
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
