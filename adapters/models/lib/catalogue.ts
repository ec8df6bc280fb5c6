// One model as an operator writes it in a URL or a file, converted for the port and the wire.
import { Type as t, type Static } from 'typebox'
import { fault } from '#contracts/faults.ts'
import type { Model } from '#ports/models.ts'

const exact = { additionalProperties: false }
const count = (minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  t.Integer({ minimum, maximum })
const text = (maxLength: number) => t.String({ minLength: 1, maxLength })

/**
 * How a prefill is marked for servers that would take a last assistant message as complete:
 * https://docs.vllm.ai (continue_final_message), https://api-docs.deepseek.com and
 * https://docs.mistral.ai (prefix).
 */
const PrefillAs = t.Union([t.Literal('plain'), t.Literal('vllm'), t.Literal('prefix')])
const Effort = t.Union([
  t.Literal('minimal'),
  t.Literal('low'),
  t.Literal('medium'),
  t.Literal('high'),
])

/**
 * Prices are whole credits: `input_per_1k` and `output_per_1k` for a thousand tokens, `minimum` for
 * a run.
 */
export const PriceEntry = t.Object(
  { input_per_1k: count(0), output_per_1k: count(0), minimum: count(0) },
  exact,
)
export const ModelEntry = t.Object(
  {
    key: t.String({ pattern: '^[\\w./:@-]{1,128}$' }),
    /** The provider's own name of the model. */
    id: text(200),
    name: t.Optional(text(100)),
    description: t.Optional(text(1000)),
    context_tokens: count(1),
    output_tokens_max: count(1),
    price: PriceEntry,
    supports: t.Optional(
      t.Object(
        {
          tools: t.Optional(t.Boolean()),
          reasoning: t.Optional(t.Boolean()),
          prefill: t.Optional(t.Boolean()),
          resume: t.Optional(t.Boolean()),
        },
        exact,
      ),
    ),
    prefill_as: t.Optional(PrefillAs),
    reasoning_effort: t.Optional(Effort),
    thinking_tokens: t.Optional(count(1024)),
  },
  exact,
)
export type ModelEntry = Static<typeof ModelEntry>

/** Facts about a model that only the wire needs. */
export type OnWire = {
  readonly id: string
  readonly prefillAs: Static<typeof PrefillAs>
  readonly effort: Static<typeof Effort>
  /** Undefined: the model decides how long it thinks. */
  readonly thinkingTokens: number | undefined
}
export type ServedModel = Model & { readonly wire: OnWire }
export type Api = 'chat' | 'responses' | 'messages'

type Place = {
  readonly provider: string
  readonly api: Api
  readonly isDefault: boolean
  /** The name of an entry's field, as the operator wrote it, for refusals. */
  readonly named: (field: string) => string
}

/** Throws INVALID_FIELD for values that are valid alone, but not together. */
export function servedModel(
  entry: ModelEntry,
  { provider, api, isDefault, named }: Place,
): ServedModel {
  const refuse = (field: string, why: string) =>
    fault('INVALID_FIELD', { field: named(field), why })
  const { tools = true, reasoning = false, prefill = false, resume = false } = entry.supports ?? {}
  if (entry.output_tokens_max > entry.context_tokens)
    throw refuse('output_tokens_max', 'must not be above context_tokens')
  if (resume && api !== 'responses')
    throw refuse('supports.resume', 'needs api responses, whose answers the provider keeps')
  if (prefill && api === 'responses')
    throw refuse('supports.prefill', 'is not offered by api responses')
  if (entry.thinking_tokens !== undefined && entry.thinking_tokens >= entry.output_tokens_max)
    throw refuse('thinking_tokens', 'must be below output_tokens_max')
  return {
    key: entry.key,
    name: entry.name ?? entry.key,
    provider,
    isDefault,
    description: entry.description ?? `The language model ${entry.id}, provided by ${provider}.`,
    contextTokens: entry.context_tokens,
    outputTokensMax: entry.output_tokens_max,
    price: {
      inputPer1k: entry.price.input_per_1k,
      outputPer1k: entry.price.output_per_1k,
      minimum: entry.price.minimum,
    },
    supports: { tools, reasoning, prefill, resume },
    wire: {
      id: entry.id,
      prefillAs: entry.prefill_as ?? 'plain',
      effort: entry.reasoning_effort ?? 'medium',
      thinkingTokens: entry.thinking_tokens,
    },
  }
}
