// A conversation in the form that all wires share. Attachments are in place, ids and names fit each
// provider, and arguments are objects.
import { createHash } from 'node:crypto'
import type { Attachment, Message, ModelRequest } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'

export type WireCall = {
  readonly id: string
  readonly name: string
  readonly arguments: { readonly [name: string]: Json }
}
export type WireMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly calls: readonly WireCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly content: string }

/** The shortest limit among the providers: OpenAI's chat completions refuse a longer id. */
const idMax = 40
const nameMax = 64

/**
 * Puts each text between marks that no text contains. So no file can imitate another file or the
 * user.
 */
export function renderedAttachments(attachments: readonly Attachment[]): string {
  let mark = 'attachment'
  for (
    let n = 2;
    attachments.some(({ name, text }) => text.includes(mark) || name.includes(mark));
    n++
  )
    mark = `attachment-${n}`
  return attachments
    .map(({ name, text }) => `<${mark} name=${JSON.stringify(name)}>\n${text}\n</${mark}>`)
    .join('\n\n')
}

const validId = (id: string): string =>
  /^[A-Za-z0-9_-]+$/.test(id) && id.length <= idMax
    ? id
    : `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`
const validName = (name: string): string =>
  name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, nameMax) || 'unknown'
const objectOf = (value: Json): WireCall['arguments'] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { unparsed: value }

/**
 * The messages of a request, in order. Call ids are made unique within it: some servers count from
 * 0 again in every answer.
 */
export function wireMessages({
  messages,
  attachments = [],
}: Pick<ModelRequest, 'messages' | 'attachments'>): WireMessage[] {
  const beside =
    attachments.length === 0 ? -1 : messages.findLastIndex(({ role }) => role === 'user')
  const used = new Set<string>()
  const current = new Map<string, string>()
  const newId = (id: string): string => {
    let own = validId(id)
    for (let n = 2; used.has(own); n++) own = validId(`${id} ${n}`)
    used.add(own)
    current.set(id, own)
    return own
  }
  return messages.map((message: Message, at): WireMessage => {
    if (message.role === 'assistant')
      return {
        role: 'assistant',
        content: message.content,
        calls: (message.toolCalls ?? []).map(call => ({
          id: newId(call.id),
          name: validName(call.name),
          arguments: objectOf(call.arguments),
        })),
      }
    if (message.role === 'tool')
      return {
        role: 'tool',
        callId: current.get(message.callId) ?? validId(message.callId),
        content: message.content,
      }
    return at === beside
      ? { role: message.role, content: `${renderedAttachments(attachments)}\n\n${message.content}` }
      : { role: message.role, content: message.content }
  })
}

/** Whether tools have answered since the user's last message: then the current answer goes on. */
export const goesOnAfterTools = (messages: readonly Message[]): boolean =>
  messages.at(-1)?.role === 'tool'
export const outputTokensOf = (
  request: Pick<ModelRequest, 'outputTokensMax'>,
  most: number,
): number => Math.max(1, Math.min(request.outputTokensMax ?? most, most))
