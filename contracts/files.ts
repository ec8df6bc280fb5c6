import { Type as t, type Static } from 'typebox'
import { contract, named, ref, tagged, Timestamp } from './contract.ts'

export const fileBytesMax = 200 << 20
export const uploadBodyBytesMax = 300 << 20
/** Characters of a text in an answer. The whole text may be longer. */
export const textExcerptCharsMax = 100_000
/** Characters of text that are kept of one upload. */
export const textCharsMax = 2_000_000

/**
 * Path separators, control characters, and characters that change the direction of text (Unicode,
 * UAX #9). Written as ranges, because not every language knows `\p{…}`.
 */
const notInNames = '/\\\\\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069'
/** A name without those characters that is neither `.` nor `..`. */
export const filenamePattern =
  `^(?:[^.${notInNames}][^${notInNames}]*|` +
  `\\.[^.${notInNames}][^${notInNames}]*|\\.\\.[^${notInNames}]+)$`
const token = "[!#$%&'*+.^_`|~0-9A-Za-z\\-]+"
/** A media type with its parameters (RFC 9110, section 8.3.1). */
export const mimePattern =
  `^${token}/${token}(?:[ \\t]*;[ ` + `\\t]*${token}=(?:${token}|"[ !#-\\[\\]-~]*"))*$`

const Filename = t.String({
  minLength: 1,
  maxLength: 255,
  pattern: filenamePattern,
  example: 'notes.md',
  'x-well-formed': true,
  description: 'Without folders and control characters.',
})
const Mime = t.String({
  minLength: 3,
  maxLength: 255,
  pattern: mimePattern,
  example: 'text/markdown',
  description: 'A media type; a text that is not in UTF-8 names its charset here.',
})
const session = t.Optional({
  ...ref('session'),
  description: 'The conversation that it belongs to, and goes with.',
})

export const NewUpload = named(
  'NewUpload',
  t.Object(
    {
      filename: Filename,
      content_base64: t.String({
        example: 'IyBOb3Rlcw==',
        contentEncoding: 'base64',
        description:
          'RFC 4648, section 4, with padding; ' + `at most ${fileBytesMax >> 20} MiB when decoded.`,
      }),
      mime: Mime,
      session_id: session,
    },
    { additionalProperties: false },
  ),
)

export const NewArtifact = named(
  'NewArtifact',
  t.Object(
    {
      filename: Filename,
      mime: Mime,
      session_id: session,
      content: t.String({
        example: '# Notes',
        description: `Kept in UTF-8, in which it has at most ${fileBytesMax >> 20} MiB.`,
      }),
    },
    { additionalProperties: false },
  ),
)

const UploadStatus = named(
  'UploadStatus',
  t.Union([
    t.Literal('parsing'),
    t.Literal('ready'),
    t.Literal('unsupported'),
    t.Literal('failed'),
  ]),
)
const SessionId = t.Union([t.String({ format: 'uuid' }), t.Null()])

/** What is known of the content of a file that is kept. */
const kept = {
  filename: t.String({ example: 'notes.md' }),
  mime: t.String({ example: 'text/markdown', description: 'Its media type.' }),
  bytes: t.Integer({ minimum: 0, example: 7 }),
  sha256: t.String({
    description: 'Of the content, in hexadecimal.',
    example: '360aa5ebfa18efd19f60eb2432c11d53e21586ff3a392ca246980970de15f0c4',
  }),
}
export const Upload = named(
  'Upload',
  t.Object({
    id: t.String({ format: 'uuid' }),
    ...kept,

    status: UploadStatus,
    detail: t.Union([t.String(), t.Null()], {
      example: null,
      description: 'Why there is no text, or not all of it.',
    }),
    text: t.Union([t.String(), t.Null()], {
      example: '# Notes',
      description:
        `The extracted text, at most ${textExcerptCharsMax} characters of it; null unless the ` +
        'status is ready.',
    }),
    text_truncated: t.Boolean({ description: 'True when there is more text than is shown.' }),
    session_id: SessionId,
    created_at: Timestamp,
  }),
)
export type Upload = Static<typeof Upload>

export const Artifact = named(
  'Artifact',
  t.Object({
    id: t.String({
      format: 'uuid',
      description: 'For GET /artifacts/{id}; `artifact_id` of events.',
    }),
    ...kept,

    session_id: SessionId,
    run_id: t.Union([t.String({ format: 'uuid' }), t.Null()], {
      description: 'The run that made it.',
    }),
    created_at: Timestamp,
  }),
)
export type Artifact = Static<typeof Artifact>

const upload = { params: { id: ref('upload') } }
const download =
  'Of the media type that it was given. Always as an attachment, never to be shown in place.'

export const files = tagged(
  'Files',
  contract({
    'POST /uploads': {
      id: 'createUpload',
      summary: 'Upload a file',
      body: NewUpload,
      streamed: 'content_base64',
      bodyMaxBytes: uploadBodyBytesMax,
      description:
        'As JSON with the content in Base64. Its text is extracted at once or soon: ' +
        'GET /uploads/{id} tells. Name its id in ' +
        '`attachments` of a run. The fields may come in any order; those before the content ' +
        'are checked before the content is read.',
      reply: t.Object({ upload_id: t.String({ format: 'uuid' }) }),
      faults: ['NOT_FOUND', 'QUOTA_REACHED', 'SHEDDING'],
    },
    'GET /uploads/{id}': {
      id: 'getUpload',
      description: 'Ask again while its status is `parsing`.',
      ...upload,
      summary: 'Read an upload: its state and its text',
      reply: Upload,
    },
    'GET /uploads/{id}/raw': {
      id: 'downloadUpload',
      ...upload,
      summary: 'Download an upload as it came',
      description: download,
      reply: { bytes: '*/*' },
    },
    'POST /artifacts': {
      id: 'createArtifact',
      description: 'For a text of your own; runs make artifacts by themselves.',
      summary: 'Create an artifact from your own text',
      status: 201,
      reply: Artifact,
      streamed: 'content',
      bodyMaxBytes: uploadBodyBytesMax,
      body: NewArtifact,
      faults: ['NOT_FOUND', 'QUOTA_REACHED', 'SHEDDING'],
    },
    'GET /artifacts/{id}': {
      id: 'downloadArtifact',
      summary: 'Download an artifact',
      description: download,
      params: { id: ref('artifact') },
      reply: { bytes: '*/*' },
    },
  }),
)
