// What all model providers do with a request.
import { fault } from '#contracts/faults.ts'
import type { Message, Model, ModelRequest } from '#ports/models.ts'

/**
 * A rough average over languages and tokenisers. Used only where no provider's count decides a
 * charge.
 */
const charactersPerToken = 4
export const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken)

export function inputTokensOf({
  messages,
  attachments = [],
}: Pick<ModelRequest, 'messages' | 'attachments'>): number {
  let characters = 0
  for (const message of messages) characters += message.content.length
  for (const attachment of attachments)
    characters += attachment.name.length + attachment.text.length
  return tokensOf(characters)
}

/** INVALID_FIELD (`model`) unless the catalogue has it. */
export function modelOf(catalogue: readonly Model[], key: string): Model {
  const model = catalogue.find(one => one.key === key)
  if (model === undefined)
    throw fault('INVALID_FIELD', {
      field: 'model',
      why: `there is no model ${JSON.stringify(key.slice(0, 64))}; GET /models lists them`,
    })
  return model
}

export const lastUserText = (messages: readonly Message[]): string =>
  messages.findLast(message => message.role === 'user')?.content ?? ''

/** Tool results since the user's last message. */
export function toolResultsSince(messages: readonly Message[]): readonly string[] {
  return messages
    .slice(messages.findLastIndex(message => message.role === 'user') + 1)
    .flatMap(message => (message.role === 'tool' ? [message.content] : []))
}
