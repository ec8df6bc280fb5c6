// A conversation as passages of the search index: the id and the text of each, and how many go into
// one call.
import type { Passage } from '#ports/search.ts'
import type { Run, Session } from '../collections.ts'

/**
 * Messages are indexed in pieces. Each piece fits into a passage, and takes a few milliseconds at
 * most.
 */
const pieceChars = 20_000
/** A piece ends at a space, if one is among its last characters. */
const spaceChars = 200
/** Bounds of one call to the index. */
const batchChars = 1_000_000
const batchPassages = 500

export const placeOf = {
  user: (userId: string) => `${userId}/`,
  session: ({ userId, id }: Pick<Session, 'userId' | 'id'>) => `${userId}/${id}/`,
  run: ({ userId, sessionId, id }: Pick<Run, 'userId' | 'sessionId' | 'id'>) =>
    `${userId}/${sessionId}/${id}/`,
  /** Sorts before every run of the session. */
  title: (session: Pick<Session, 'userId' | 'id'>) => `${placeOf.session(session)}!`,
}
/** The title of a conversation as a passage. */
export const titleOf = (session: Session): Passage => ({
  id: placeOf.title(session),
  text: session.title.toWellFormed(),
})

type Role = 'user' | 'assistant'
/** The role whose text a piece is, as the last part of its id begins. */
export const signs: Readonly<Record<Role, string>> = { user: 'm', assistant: 'r' }
type Parts = {
  readonly sessionId: string
  readonly run: { readonly id: string; readonly role: Role } | undefined
}
/** Splits an id that was made here. The id of a title has no run. */
export function partsOf(id: string): Parts {
  const [, sessionId = '', runId = '!', piece = ''] = id.split('/')
  if (runId === '!') return { sessionId, run: undefined }
  return {
    sessionId,
    run: { id: runId, role: piece.startsWith(signs.user) ? 'user' : 'assistant' },
  }
}

function* piecesOf(text: string, charsMax: number): Generator<string> {
  const all = text.slice(0, charsMax).toWellFormed()
  for (let at = 0; at < all.length; ) {
    const end = Math.min(all.length, at + pieceChars)
    const space = end < all.length ? all.lastIndexOf(' ', end) : -1
    const cut = space > Math.max(at, end - spaceChars) ? space : end
    yield all.slice(at, cut).toWellFormed()
    at = cut
  }
}
/** The message and the answer of a run as passages, at most so many characters of each. */
export function passagesOf(run: Run, charsMax: number): Passage[] {
  const place = placeOf.run(run)
  const pieces = (role: Role, text: string) =>
    Array.from(
      piecesOf(text, charsMax),
      (piece, n): Passage => ({
        id: `${place}${signs[role]}${String(n).padStart(4, '0')}`,
        text: piece,
      }),
    )
  return [
    ...pieces('user', run.request.message),
    ...(run.answerCut ? [] : pieces('assistant', run.answer ?? '')),
  ]
}
/** Splits passages into calls to the index. */
export const batches = function* (passages: readonly Passage[]): Generator<Passage[]> {
  for (let at = 0; at < passages.length; ) {
    let end = at
    let chars = 0
    while (
      end < passages.length &&
      end - at < batchPassages &&
      (end === at || chars + passages[end]!.text.length <= batchChars)
    )
      chars += passages[end++]!.text.length
    yield passages.slice(at, end)
    at = end
  }
}
