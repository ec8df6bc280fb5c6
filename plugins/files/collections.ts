// Documents about files. The content is a blob, known by its SHA-256; documents with the same
// content share it.
import { collection } from '#ports/storage.ts'
import type { UploadStatus } from './api.ts'

type Kept = {
  readonly id: string
  readonly orgId: string
  readonly userId: string
  readonly sessionId?: string
  readonly filename: string
  readonly mime: string
  /** SHA-256 of the content, in hex: the blob's address. */
  readonly hash: string
  readonly bytes: number
  /**
   * Set until the blob is stored; until then nobody sees the document. The sweep removes what a
   * crash leaves.
   */
  readonly storingSince?: number
  readonly createdAt: number
}
export type Upload = Kept & {
  readonly status: UploadStatus
  /** Why there is no text, or not all of it. */
  readonly detail?: string
  /** A short text; a longer one is a blob of its own. */
  readonly text?: string
  readonly textHash?: string
  /** Length of the whole text that is kept, in UTF-16 code units. */
  readonly textChars?: number
  /** The file has more text than is kept. */
  readonly textCut?: boolean
  /** Set while a job shall parse the file, so that the sweep finds lost jobs. */
  readonly parsingSince?: number
  /**
   * How often a job began to parse the file. A file that ends the process is given up after some
   * tries.
   */
  readonly tries: number
}
export type Artifact = Kept & { readonly runId?: string }
/** Notes that a blob is about to be removed, because nothing seems to refer to it. See blobs.ts. */
export type Removal = {
  readonly id: string
  readonly orgId: string
  readonly hash: string
  readonly createdAt: number
}

export const Uploads = collection<Upload>({
  name: 'uploads',
  scope: 'tenant',
  global: true,
  owner: 'userId',
  index: [
    ['orgId', 'hash'],
    ['orgId', 'textHash'],
    ['orgId', 'sessionId'],
    ['storingSince'],
    ['parsingSince'],
  ],
})
export const Artifacts = collection<Artifact>({
  name: 'artifacts',
  scope: 'tenant',
  global: true,
  owner: 'userId',
  index: [
    ['orgId', 'hash'],
    ['orgId', 'sessionId', 'createdAt'],
    ['orgId', 'runId', 'createdAt'],
    ['storingSince'],
  ],
})
export const Removals = collection<Removal>({
  name: 'blob_removals',
  scope: 'tenant',
  global: true,
  index: [['orgId', 'hash'], ['createdAt']],
})

/** What an organisation's files take, by its id. */
export type FileUsage = {
  readonly id: string
  readonly orgId: string
  readonly files: number
  readonly bytes: number
}
export const FileUsages = collection<FileUsage>({ name: 'file_usage', scope: 'tenant' })

/** Why the files plugin looks across organisations. */
export const sweepReason = 'the sweep finishes what a crash cut short, in every organisation'
