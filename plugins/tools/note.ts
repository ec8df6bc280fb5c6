// The tool `note`.
import { Type as t, type Static } from 'typebox'
import type { ArtifactsApi } from '../files/api.ts'
import type { Tool } from '../runs/api.ts'

const Arguments = t.Object(
  {
    title: t.String({
      minLength: 1,
      maxLength: 200,
      description: 'What the note is about; it names the file.',
    }),
    text: t.String({ minLength: 1, maxLength: 200_000, description: 'The note, in Markdown.' }),
  },
  { additionalProperties: false },
)

const fileCharsMax = 200
/** What no filename may have: see contracts/files.ts. */
const unfit = /[/\\\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069\s]+/gu

const filenameOf = (title: string): string =>
  `${Array.from(title.replace(unfit, ' ').trim()).slice(0, fileCharsMax).join('') || 'note'}.md`
/** Made of the artifact alone, so that `probe` answers what `run` would have. */
const saved = ({ id, filename }: { readonly id: string; readonly filename: string }) => ({
  content: JSON.stringify({ artifact_id: id }),
  artifact: { id, filename },
})

export const note = ({ artifacts }: { artifacts: ArtifactsApi }): Tool => ({
  name: 'note',
  effect: 'once',
  parameters: Arguments,
  description:
    'Saves a note as a Markdown file of this conversation, for the user to keep and ' +
    'download. Answers the artifact_id.',
  async run(args, { orgId, userId, key, sessionId, runId, signal }) {
    const { title, text } = args as Static<typeof Arguments>
    return saved(
      await artifacts.create(
        { orgId, userId },
        {
          key,
          sessionId,
          runId,
          filename: filenameOf(title),
          mime: 'text/markdown; charset=utf-8',
          content: Buffer.from(`# ${title.replace(/\s+/g, ' ')}\n\n${text}\n`),
          signal,
        },
      ),
    )
  },
  async probe(key, { orgId, userId }) {
    const found = await artifacts.find({ orgId, userId }, key)
    return found ? saved(found) : 'not done'
  },
})
