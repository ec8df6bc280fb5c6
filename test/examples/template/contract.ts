import { Type as t } from 'typebox'
import { contract, page, Paging, ref, Timestamp } from '#contracts/contract.ts'

const Memo = t.Object({ id: t.String({ format: 'uuid' }), text: t.String(), created_at: Timestamp })
const memo = { params: { id: ref('memo') } }

export const memos = contract({
  'POST /memos': {
    summary: 'Keep a memo',
    status: 201,
    reply: Memo,
    body: t.Object(
      { text: t.String({ minLength: 1, maxLength: 10_000, description: 'What to keep.' }) },
      { additionalProperties: false },
    ),
  },
  'GET /memos': { summary: 'List your memos, the latest first', query: Paging, reply: page(Memo) },
  'GET /memos/{id}': { ...memo, summary: 'Read a memo', reply: Memo },
  'DELETE /memos/{id}': { ...memo, summary: 'Remove a memo', reply: 'none' },
})
