// Checks who owns a file, and the session that it names.
import { fault } from '#kernel'
import type { Collection, ScopedStorage } from '#ports/storage.ts'
import type { Scope, SessionOwner } from '../api.ts'
import type { Artifact, Upload } from '../collections.ts'

/** NOT_FOUND unless a contributor says that the session is the user's. */
export async function requireSession(
  owners: readonly SessionOwner[],
  scope: Scope,
  sessionId: string | undefined,
): Promise<void> {
  if (sessionId === undefined) return
  for (const owner of owners) if (await owner.owns(scope, sessionId)) return
  throw fault('NOT_FOUND', { what: 'session' })
}

/**
 * Undefined for a file of another user, also in the same organisation, and for one that is not
 * stored yet.
 */
export async function ownFile<F extends Upload | Artifact>(
  store: ScopedStorage,
  collection: Collection<F>,
  scope: Scope,
  id: string,
): Promise<F | undefined> {
  const file = await store.tenant(scope).get(collection, id)
  return file && file.userId === scope.userId && file.storingSince === undefined ? file : undefined
}
