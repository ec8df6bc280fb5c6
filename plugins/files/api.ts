// What other plugins may use of files: uploads, artifacts, and the points for parsers and owners of
// sessions.
import { Type as t } from 'typebox'
import type { Artifact } from '#contracts/files.ts'
import { point, service } from '#kernel'

/** The owner of files: one user of an organisation. */
export type Scope = { readonly orgId: string; readonly userId: string }

/** `unsupported`: no parser reads it. `failed`: one tried and could not. */
export type UploadStatus = 'parsing' | 'ready' | 'unsupported' | 'failed'

/** The text, or a sentence that says why there is none. */
export type Parsed =
  | { readonly text: string /** There was more than `textMax`. */; readonly truncated?: boolean }
  | { readonly unsupported: string }

/** Turns a kind of file into text. */
export type Parser = {
  /** The name in the log. */
  readonly name: string
  /** `mime` in lower case and without parameters. */
  accepts(mime: string, filename: string): boolean
  /** Used only where no other parser accepts the upload. */
  readonly fallback?: boolean
  /**
   * Answers at most `textMax` characters (UTF-16 code units). `signal` aborts at the time limit.
   * Users see the sentence of a fault; any other error is logged. Both mean `failed`.
   */
  parse(
    bytes: AsyncIterable<Uint8Array>,
    options: {
      readonly signal: AbortSignal
      readonly textMax: number
      /** The media type as it was given, with parameters. */
      readonly mime: string
    },
  ): Promise<Parsed>
}
/**
 * Contributed by whoever can read PDF, office documents, sound… The first that accepts an upload
 * reads it, in the background.
 *  @example plugins/files/uploads/text.ts#textParser
 *  @example plugins/files/plugin.ts#contributes
 */
export const Parsers = point<Parser>('parsers', {
  rules: {
    fields: t.Object({ name: t.String({ minLength: 1 }) }),
    methods: { accepts: 'required', parse: 'required' },
  },
})

export type SessionOwner = {
  /**
   * True for a session of this user. False for an unknown session, and for one that is being
   * removed.
   */
  owns(scope: Scope, sessionId: string): Promise<boolean>
}
/**
 * Tells who owns a session. Without a contributor, no session is known.
 *  @example plugins/runs/prompt/files.ts#sessionOwner
 */
export const SessionOwners = point<SessionOwner>('session-owners', {
  remote: true,
  rules: { methods: { owns: 'required' } },
})

/** An upload as a run sees it. `text` is '' unless the status is ready. */
export type Attached = {
  readonly id: string
  readonly name: string
  readonly text: string
  readonly status: UploadStatus
  /** True when the file has more text. */
  readonly truncated: boolean
  /** Characters of the whole stored text. */
  readonly chars: number
}

export type UploadsApi = {
  /**
   * Uploads in the order of `ids`. Waits up to ten seconds for those that are being parsed; then
   * they have the status `parsing`. NOT_FOUND names the place: `upload (attachments.<i>)`.
   * `textMax`: characters of each; default 100,000. `charsMax`: characters of all together, first
   * files first; later ones are not read.
   */
  attach(
    scope: Scope,
    ids: readonly string[],
    options?: {
      readonly textMax?: number
      readonly charsMax?: number
      readonly signal?: AbortSignal
    },
  ): Promise<Attached[]>
  /**
   * Removes the session's uploads and artifacts, and content that nothing else refers to. It may be
   * repeated.
   */
  removeOfSession(scope: Scope, sessionId: string): Promise<void>
}
/**
 * Users' uploads, as text.
 *  @example plugins/runs/prompt/files.ts#createReadUploads
 */
export const Uploads = service<UploadsApi>('uploads')

/** `filename` and `mime` are as on the wire; with `sessionId` it is listed there. */
export type NewArtifact = {
  /** The idempotency key. A repeated key answers the first artifact, whatever else is given. */
  readonly key: string
  readonly sessionId?: string
  readonly runId?: string
  readonly filename: string
  readonly mime: string
  readonly content: AsyncIterable<Uint8Array> | Uint8Array
  /** A run needs this artifact to go on, so it is stored even beyond the organisation's quota. */
  readonly isResult?: true
  readonly signal?: AbortSignal
}
export type ArtifactsApi = {
  /**
   * When it resolves, the content is on disk; the document is on disk with the next `durable()`.
   * INVALID_FIELD for a name or a media type that the wire would refuse. BODY_TOO_LARGE,
   * QUOTA_REACHED. CONFLICT while other content is being stored under the key.
   */
  create(
    scope: Scope,
    artifact: NewArtifact,
  ): Promise<{ readonly id: string; readonly bytes: number; readonly filename: string }>
  /** The artifact with this key, if it was made. */
  find(
    scope: Scope,
    key: string,
  ): Promise<{ readonly id: string; readonly bytes: number; readonly filename: string } | undefined>
  /** What the run made, the oldest first, at most 200. The caller has checked who owns the run. */
  listOfRun(scope: Scope, runId: string): Promise<Artifact[]>
  /** The session's artifacts, oldest first. The caller has checked who owns the session. */
  list(
    scope: Scope,
    sessionId: string,
    paging: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ items: Artifact[]; next_cursor?: string }>
}
/**
 * Stores files that a plugin makes for a user. The user downloads them at GET /artifacts/{id}.
 *  @example plugins/runs/prompt/files.ts#createKeepText
 */
export const Artifacts = service<ArtifactsApi>('artifacts')
