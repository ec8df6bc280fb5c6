// Tells whether a request was made before, under the same idempotency key.
import { createHash } from 'node:crypto'
import type { RunStart } from '#contracts/runs.ts'
import { fault, type Caller } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'

export const fingerprintOf = (request: RunStart) =>
  createHash('sha256')
    .update(JSON.stringify(request, Object.keys(request).sort()))
    .digest('base64url')

/**
 * Whether this is the request that the run began with. A repeated request may also name the session
 * that this run opened.
 */
function isSame({ fingerprint, opensSession, sessionId }: Run, request: RunStart): boolean {
  if (fingerprintOf(request) === fingerprint) return true
  const { session_id: named, ...rest } = request
  return opensSession && named?.toLowerCase() === sessionId && fingerprintOf(rest) === fingerprint
}

/** The earlier run under this key. Throws IDEMPOTENCY_MISMATCH if its request was another. */
export async function earlierRun(
  caller: Caller,
  request: RunStart,
  own: Store,
): Promise<Run | undefined> {
  const {
    items: [found],
  } = await own.find(Runs, {
    where: { userId: caller.userId, idempotencyKey: request.idempotency_key! },
    limit: 1,
  })
  if (found && !isSame(found, request)) throw fault('IDEMPOTENCY_MISMATCH')
  return found
}
