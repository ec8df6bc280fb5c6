import type { Message, Model, Price, Usage } from '#ports/models.ts'

/** Characters that one token stands for, for estimates before a call. */
const charsPerToken = 4

/** Whole credits, rounded up; nothing for a call that produced nothing, else at least the minimum. */
export function creditsFor(price: Price, { inputTokens, outputTokens }: Usage): number {
  if (outputTokens === 0) return 0
  return Math.max(price.minimum, Math.ceil((inputTokens * price.inputPer1k + outputTokens * price.outputPer1k) / 1000))
}

export const estimateTokens = (messages: readonly Message[]): number => Math.ceil(messages.reduce((sum, { content }) => sum + content.length, 0) / charsPerToken)

/** The most that one call may cost: what is set aside before any work. */
export const holdFor = (model: Model, messages: readonly Message[]): number =>
  Math.max(model.price.minimum, creditsFor(model.price, { inputTokens: estimateTokens(messages), outputTokens: model.outputTokensMax }))
