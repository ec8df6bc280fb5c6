// Files beside a run: what the user attached, and what grew too long for an event.
import { fault } from '#kernel'
import type { ReadUploads } from './conversation.ts'
import type { LoopDeps } from './loop.ts'

export const createReadUploads = (): ReadUploads => async (_scope, ids) => {
  if (ids.length > 0) throw fault('NOT_FOUND', { what: 'upload (attachments.0)' })
  return []
}
export const createKeepText = (): LoopDeps['keepText'] => async () => { throw fault('UNAVAILABLE', { what: 'The store of artifacts', why: 'there is none' }) }
