// Builds what the model reads in one call, and makes it fit. The request and this run's own words
// always stay; then come files, then past exchanges, the newest first.
import type { Attachment, Message } from '#ports/models.ts'
import type { Run } from '../collections.ts'
import { messagesOf, type Conversation, type ReadAttachment } from './conversation.ts'
import { answerFrom, planInstruction, replan, workInstruction, workOn } from './planning.ts'
import { estimateTokens, tokensOf } from '../price.ts'
import type { Purpose } from '../journal/records.ts'
import type { State } from '../journal/state.ts'

/** Counts what was left out. */
export type Cut = {
  readonly dropped_messages: number
  readonly shortened_results: number
  readonly dropped_attachment_characters: number
}
export type Context = {
  readonly messages: readonly Message[]
  readonly attachments: readonly Attachment[]
  readonly cut: Cut | undefined
}

/** Characters that stay of a tool result that is shortened. */
const resultExcerptChars = 600
/**
 * The note about the left-out characters takes room, too. A result that is longer by less than the
 * note would not get shorter.
 */
const leftOutChars = 40
/**
 * The share of the room that files may take before past exchanges get theirs. The room is what the
 * request and this run leave.
 */
const attachmentsShare = 0.75

// Creating a formatter costs more than everything else in a short run, and most callers are in UTC.
const localTime = (at: number, timeZone: string) =>
  timeZone === 'UTC'
    ? new Date(at).toUTCString()
    : new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone }).format(
        at,
      )

/** The messages of this run itself that matter for the purpose of its next model call. */
function ownWords({ steps, plan }: State, purpose: Purpose): Message[] {
  const running = plan.findIndex(({ status }) => status === 'running')
  const opening: Message[] =
    purpose === 'work'
      ? [workOn(plan, running)]
      : plan.length === 0
        ? []
        : [purpose === 'plan' ? replan(plan) : answerFrom(plan)]
  const accepted = steps.filter(({ accepted: usage }) => usage !== undefined)
  let from = accepted.length
  while (
    from > 0 &&
    accepted[from - 1]!.purpose === purpose &&
    accepted[from - 1]!.calls.length > 0
  )
    from--
  const said = accepted.slice(from).flatMap(({ text, calls }): Message[] => [
    { role: 'assistant', content: text, toolCalls: calls.map(({ call }) => call) },
    ...calls.map(
      ({ call, outcome }): Message => ({
        role: 'tool',
        callId: call.id,
        content: outcome
          ? `${outcome.status === 'ok' ? '' : `[${outcome.status}] `}${outcome.content}`
          : '[not called]',
      }),
    ),
  ])
  return [...opening, ...said]
}

const instructionFor = (
  run: Pick<Run, 'terms' | 'request' | 'createdAt'>,
  purpose: Purpose,
  planStepsMax: number,
): Message => ({
  role: 'system',
  content: [
    run.terms.instruction,
    `It is ${localTime(run.createdAt, run.request.client_tz)} (${run.request.client_tz}).`,
    purpose === 'plan' ? planInstruction(planStepsMax) : purpose === 'work' ? workInstruction : '',
  ]
    .filter(Boolean)
    .join('\n'),
})

/** Shortens tool results, the oldest first, until the messages fit. */
function shorten(
  own: readonly Message[],
  room: number,
): { messages: Message[]; shortened: number } {
  const messages = [...own]
  let shortened = 0
  for (let at = 0; at < messages.length && estimateTokens(messages) > room; at++) {
    const message = messages[at]!
    if (message.role !== 'tool' || message.content.length <= resultExcerptChars + leftOutChars)
      continue
    const excerpt = message.content.slice(0, resultExcerptChars)
    const leftOut = message.content.length - resultExcerptChars
    messages[at] = { ...message, content: `${excerpt}\n[${leftOut} characters left out]` }
    shortened++
  }
  return { messages, shortened }
}

/**
 * Takes the first files whole while they fit. The first file that does not fit is cut, and later
 * files are left out.
 */
function fitFiles(
  files: readonly ReadAttachment[],
  tokens: number,
): { files: Attachment[]; dropped: number } {
  let chars = tokens * 4
  let dropped = 0
  const kept: Attachment[] = []
  for (const { name, text, unread = 0 } of files) {
    const taken = Math.max(0, Math.min(text.length, chars - name.length))
    if (taken > 0) kept.push({ name, text: text.slice(0, taken) })
    dropped += text.length - taken + unread
    chars -= taken + name.length
  }
  return { files: kept, dropped }
}

export function contextOf(
  run: Pick<Run, 'terms' | 'request' | 'createdAt'>,
  conversation: Conversation,
  state: State,
  { purpose, planStepsMax }: { purpose: Purpose; planStepsMax: number },
): Context {
  const { contextTokens, outputTokensMax } = run.terms
  const window = Math.max(
    1,
    contextTokens - Math.min(outputTokensMax, Math.floor(contextTokens / 2)),
  )
  const fixed: Message[] = [
    instructionFor(run, purpose, planStepsMax),
    { role: 'user', content: conversation.request },
  ]
  const { messages: own, shortened } = shorten(
    ownWords(state, purpose),
    window - estimateTokens(fixed),
  )
  const left = Math.max(0, window - estimateTokens([...fixed, ...own]))
  const past = messagesOf(conversation)
  const wanted = tokensOf(
    conversation.attachments.reduce((sum, { name, text }) => sum + name.length + text.length, 0),
  )
  const { files, dropped } = fitFiles(
    conversation.attachments,
    wanted + estimateTokens(past) <= left ? left : Math.floor(left * attachmentsShare),
  )
  let room =
    left - tokensOf(files.reduce((sum, { name, text }) => sum + name.length + text.length, 0))
  let from = past.length
  // Whole exchanges: an answer without its request says nothing.
  while (from > 0) {
    const size = past[from - 1]!.role === 'assistant' ? 2 : 1
    const cost = estimateTokens(past.slice(from - size, from))
    if (cost > room) break
    room -= cost
    from -= size
  }
  const cut: Cut = {
    dropped_messages: from,
    shortened_results: shortened,
    dropped_attachment_characters: dropped,
  }
  const opening = [fixed[0]!, ...past.slice(from), fixed[1]!]
  return {
    messages: [...opening, ...own],
    attachments: files,
    cut: from + shortened + dropped > 0 ? cut : undefined,
  }
}
