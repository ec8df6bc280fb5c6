// Two tools over the search port, as a plugin of somebody's might have them: one keeps a passage
// under the key of its call, one finds passages again.
import { Type as t, type Static } from 'typebox'
import { definePlugin, hasCode, into } from '#kernel'
import { SystemClock, type Clock } from '#ports/clock.ts'
import { Search, type Passages, type ScopedSearch } from '#ports/search.ts'
import { Tools, type Tool, type ToolCallInfo } from '../../../../plugins/runs/api.ts'

/** The collection's name. */
export const remembered = 'remembered'
const Arguments = t.Object(
  {
    text: t.String({
      minLength: 1,
      maxLength: 1000,
      description: 'What is to be remembered, or looked for.',
    }),
    patient: t.Boolean({ description: 'Whether an index that is away is waited for, or told.' }),
  },
  { additionalProperties: false },
)

type Deps = { readonly search: ScopedSearch; readonly clock: Clock }
/** Longer than a search server takes to come back. */
const timeoutMs = 120_000

const tool =
  (
    name: string,
    effect: 'keyed' | 'none',
    description: string,
    act: (passages: Passages, text: string, key: string) => Promise<object>,
  ) =>
  ({ search, clock }: Deps): Tool => ({
    name,
    effect,
    description,
    parameters: Arguments,
    timeoutMs,
    async run(args, { orgId, key, signal }: ToolCallInfo) {
      const { text, patient } = args as Static<typeof Arguments>
      const passages = search.tenant({ orgId })
      for (;;) {
        try {
          await passages.define(remembered, { languages: ['none'] })
          return { content: JSON.stringify(await act(passages, text, key)) }
        } catch (error) {
          if (!patient || !hasCode(error, 'UNAVAILABLE')) throw error
          await clock.sleep(error.retryAfterMs ?? 1000, signal)
        }
      }
    },
  })
const remember = tool('remember', 'keyed', 'Remembers a text.', async (passages, text, id) => {
  const {
    errors: [refused],
  } = await passages.index(remembered, [{ id, text }])
  if (refused) throw refused.error
  return { id }
})
const recall = tool('recall', 'none', 'Finds what was remembered.', async (passages, text) => ({
  found: (await passages.query(remembered, { text })).hits.map(({ id }) => id),
}))

export default definePlugin({
  name: 'memory',
  version: '1.0.0',
  kernel: '^1.0.0',
  uses: { search: Search, clock: SystemClock },
  contributes: [into(Tools, remember), into(Tools, recall)],
})
