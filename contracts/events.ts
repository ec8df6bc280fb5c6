// Every type of stream event with the schema of its data. Clients skip types that they do not know; types are only ever added.
import { Type as t, type Static } from 'typebox'

const step = t.Integer({ minimum: 0, description: 'Which model call of the run, from 0.' })
const attempt = t.Integer({ minimum: 1, description: 'Which try of that call, from 1.' })

export const events = {
  token: t.Object({ text: t.String({ description: 'A fragment of the answer.' }), step, attempt }),
  reasoning: t.Object({ text: t.String({ description: 'A fragment of the deliberation before the answer.' }), step, attempt }),
  superseded: t.Object({
    step, attempt, keep: t.Integer({ minimum: 0, description: 'How many characters of what this attempt streamed stay; the rest is replaced by what follows.' }),
    reason: t.String({ description: 'Why the attempt was given up: `interrupted` or `failed`.' }),
  }),
  usage: t.Object({
    input_tokens: t.Integer({ minimum: 0 }), output_tokens: t.Integer({ minimum: 0 }), total_tokens: t.Integer({ minimum: 0 }),
    credits: t.Integer({ minimum: 0, description: 'Whole credits charged for the run.' }), model: t.String(),
  }),
  done: t.Object({ status: t.Union([t.Literal('done'), t.Literal('cancelled')]), session_id: t.String({ format: 'uuid' }) }),
  error: t.Object({ code: t.String(), detail: t.String() }),
  gone: t.Object({ first: t.Integer({ description: 'The first seq that is still kept: reload the session, then read on from here.' }) }),
} as const

export type EventData = { [K in keyof typeof events]: Static<(typeof events)[K]> }
/** Exactly one of these ends a run's stream. */
export const terminalTypes = ['done', 'error'] as const
