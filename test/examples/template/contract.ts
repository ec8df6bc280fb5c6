import { Type as t } from 'typebox'
import { contract, named, page, Paging, ref, tagged, Timestamp } from '#contracts/contract.ts'

const text = t.String({
  minLength: 1,
  maxLength: 10_000,
  example: 'The red one.',
  description: 'What to keep.',
})
const Memo = named(
  'Memo',
  t.Object({ id: t.String({ format: 'uuid' }), text, created_at: Timestamp }),
)
const memo = { params: { id: ref('memo') } }

export const memos = tagged(
  'Memos',
  contract({
    'POST /memos': {
      id: 'createMemo',
      summary: 'Keep a memo',
      description: 'It is kept until you remove it.',
      status: 201,
      reply: Memo,
      body: t.Object({ text }, { additionalProperties: false }),
    },
    'GET /memos': {
      id: 'listMemos',
      summary: 'List your memos',
      description: 'The latest first.',
      query: Paging,
      reply: page(Memo),
    },
    'GET /memos/{id}': {
      ...memo,
      id: 'getMemo',
      summary: 'Read a memo',
      description: 'Yours alone: those of others are not found.',
      reply: Memo,
    },
    'DELETE /memos/{id}': {
      ...memo,
      id: 'removeMemo',
      summary: 'Remove a memo',
      description: 'It cannot be brought back.',
      reply: 'none',
    },
  }),
)
