import { Type as t, type Static } from 'typebox'

export const FilesConfig = t.Object({
  receiving_max: t.Integer({
    default: 16,
    minimum: 1,
    maximum: 1000,
    description:
      'Uploads received at a time in this process; one user has at most a quarter of them, ' +
      'one address half.',
  }),
  line_max: t.Integer({
    default: 64,
    minimum: 0,
    maximum: 10_000,
    description: 'Uploads that wait for a place; more are answered 429.',
  }),
  parse_ms: t.Integer({
    default: 60_000,
    minimum: 100,
    maximum: 3_600_000,
    description: 'How long the text of one file may take, in milliseconds.',
  }),
  attached_chars_kept: t.Integer({
    default: 16_000_000,
    minimum: 0,
    description:
      'Characters of attached files that this process keeps for the next run that has the ' +
      'same ones; 0: none.',
  }),
  files_max_per_org: t.Integer({
    default: 100_000,
    minimum: 1,
    description: 'Uploads and artifacts of one organisation; beyond them none is taken.',
  }),
  bytes_max_per_org: t.Integer({
    default: 50 * 2 ** 30,
    minimum: 1,
    description: 'Bytes of uploads and artifacts of one organisation; beyond them none is taken.',
  }),
})
export type FilesConfig = Static<typeof FilesConfig>

/** Milliseconds that an upload waits for its turn before it is answered 429. */
export const lineMsMax = 30_000
/** A file up to this size is parsed before its upload is answered. */
export const parseAtOnceBytesMax = 1 << 20
/** A text up to this length stands in its document; a longer one is a blob. */
export const inlineTextCharsMax = 16_384
/** How often a job may begin to parse a file. */
export const parseTriesMax = 5
export const attachWaitMs = 10_000
export const attachPollMs = 100
/** Milliseconds after which an unfinished step was interrupted by a crash. */
export const staleMs = 10 * 60_000
export const sweepCron = '*/5 * * * *'
