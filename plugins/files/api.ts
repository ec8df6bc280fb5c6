// What other plugins may use of files: uploads for a run, artifacts of a run, and the points for
// parsers and for who owns a session.
import { Type as t } from 'typebox'
import type { Artifact } from '#contracts/files.ts'
import { point, service } from '#kernel'

/** Whose files: within the organisation they belong to one user. */
export type Scope = { readonly orgId: string; readonly userId: string }

/** `unsupported`: no parser reads it. `failed`: one tried and could not. */
export type UploadStatus = 'parsing' | 'ready' | 'unsupported' | 'failed'

/** Text, or a sentence why there is none to be had of such content. */
export type Parsed =
  | { readonly text: string /** There was more than `textMax`. */; readonly truncated?: boolean }
  | { readonly unsupported: string }

/** Turns a kind of file into text. */
export type Parser = {
  /** For the log. */
  readonly name: string
  /** `mime` in lower case and without parameters. */
  accepts(mime: string, filename: string): boolean
  /** Asked only where no other parser accepts. */
  readonly fallback?: boolean
  /**
   * At most `textMax` characters (UTF-16 code units). `signal` aborts at the time limit. A fault's
   * sentence is shown to the user, any other error is logged; both mean `failed`.
   */
  parse(
    bytes: AsyncIterable<Uint8Array>,
    options: {
      readonly signal: AbortSignal
      readonly textMax: number
      /** As it was given, with its parameters. */
      readonly mime: string
    },
  ): Promise<Parsed>
}
/**
 * Contributed by whoever can read PDF, office documents, sound… The first that accepts an upload
 * reads it, in the background.
 *  @example plugins/files/text.ts#textParser
 *  @example plugins/files/plugin.ts#contributes
 */
export const Parsers = point<Parser>('parsers', {
  rules: {
    fields: t.Object({ name: t.String({ minLength: 1 }) }),
    methods: { accepts: 'required', parse: 'required' },
  },
})

export type SessionOwner = {
  /** Is it a session of this user? False for one that is unknown or going. */
  owns(scope: Scope, sessionId: string): Promise<boolean>
}
/** Whoever keeps sessions says whose they are. With no contributor no session is known.
 *  @example plugins/runs/prompt/files.ts#sessionOwner */
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
  /** There is more text than is given here. */
  readonly truncated: boolean
  /** Length of all the text that is kept of it. */
  readonly chars: number
}

export type UploadsApi = {
  /**
   * In the order of `ids`. One that is being parsed is waited for, ten seconds for all of them;
   * then it comes as `parsing`. NOT_FOUND names the place: `upload (attachments.<i>)`. `textMax`:
   * characters of each; default 100,000. `charsMax`: of all together, the first files first; what
   * is beyond is not read.
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
   * Uploads and artifacts of the session, with their content where nothing else refers to it. May
   * be repeated.
   */
  removeOfSession(scope: Scope, sessionId: string): Promise<void>
}
/** What users uploaded, as text.
 *  @example plugins/runs/prompt/files.ts#createReadUploads */
export const Uploads = service<UploadsApi>('uploads')

/** `filename` and `mime` are as on the wire; with `sessionId` it is listed there. */
export type NewArtifact = {
  /**
   * The same key is the same artifact, whatever else is given: a repetition answers the first one.
   */
  readonly key: string
  readonly sessionId?: string
  readonly runId?: string
  readonly filename: string
  readonly mime: string
  readonly content: AsyncIterable<Uint8Array> | Uint8Array
  /** A run goes on only with it: it is kept though the organisation may have no more files. */
  readonly isResult?: true
  readonly signal?: AbortSignal
}
export type ArtifactsApi = {
  /**
   * Once it resolves the content is on disk; the document is with the next `durable()`.
   * INVALID_FIELD for a name or a media type that the wire would refuse, BODY_TOO_LARGE,
   * QUOTA_REACHED, CONFLICT while other content is being stored under the key.
   */
  create(
    scope: Scope,
    artifact: NewArtifact,
  ): Promise<{ readonly id: string; readonly bytes: number; readonly filename: string }>
  /** Was it made? */
  find(
    scope: Scope,
    key: string,
  ): Promise<{ readonly id: string; readonly bytes: number; readonly filename: string } | undefined>
  /** The oldest first. Whose session it is has been checked by the caller. */
  list(
    scope: Scope,
    sessionId: string,
    paging: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ items: Artifact[]; next_cursor?: string }>
}
/** Files that a plugin makes for a user, who downloads them at GET /artifacts/{id}.
 *  @example plugins/runs/prompt/files.ts#createKeepText */
export const Artifacts = service<ArtifactsApi>('artifacts')
