import type { Attachment, Message, Model, Price, ToolSpec, Usage } from '#ports/models.ts'

/** Characters that one token stands for, for estimates before a call. */
export const charsPerToken = 4

/**
 * Returns whole credits, rounded up, and at least the minimum. A usage of no tokens costs nothing.
 */
export function creditsFor(price: Price, { inputTokens, outputTokens }: Usage): number {
  if (inputTokens === 0 && outputTokens === 0) return 0
  return Math.max(
    price.minimum,
    Math.ceil((inputTokens * price.inputPer1k + outputTokens * price.outputPer1k) / 1000),
  )
}

export const tokensOf = (characters: number): number => Math.ceil(characters / charsPerToken)
const charsOf = (message: Message): number =>
  message.content.length + ('toolCalls' in message ? JSON.stringify(message.toolCalls).length : 0)
export const estimateTokens = (
  messages: readonly Message[],
  attachments: readonly Attachment[] = [],
): number =>
  tokensOf(
    messages.reduce((sum, message) => sum + charsOf(message), 0) +
      attachments.reduce((sum, { name, text }) => sum + name.length + text.length, 0),
  )

/**
 * Estimates the tokens of tools, as a JSON array. Each tool is counted once: its schema may be
 * long, and every step of every run offers it.
 */
export function createToolCount(): (tools: readonly ToolSpec[]) => number {
  const counted = new WeakMap<ToolSpec, number>()
  const charsOfTool = (tool: ToolSpec): number => {
    const chars = counted.get(tool) ?? JSON.stringify(tool).length
    counted.set(tool, chars)
    return chars
  }
  return tools => tokensOf(tools.reduce((sum, tool) => sum + charsOfTool(tool) + 1, 1))
}

/** The most that one call may cost. Admission holds it before any work. */
export const holdFor = (
  model: Model,
  messages: readonly Message[],
  attachments: readonly Attachment[],
): number =>
  Math.max(
    model.price.minimum,
    creditsFor(model.price, {
      inputTokens: estimateTokens(messages, attachments),
      outputTokens: model.outputTokensMax,
    }),
  )
