// Records the tool calls of one answer, in the journal and in the audit log: intent, result,
// refusal and question.
import type { Json } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Tool } from '../../api.ts'
import type { Run } from '../../collections.ts'
import { clip, jsonBytes } from '../../journal/bytes.ts'
import type { Journal } from '../../journal/journal.ts'
import { event } from '../../journal/records.ts'
import type { Asked, CallState, Outcome, Step } from '../../journal/state.ts'
import type { AuditLog } from '../../tools/audit-log.ts'
import { infoOf as infoOfCall } from './tool-call-info.ts'
import { effectOf, type Made, type Result } from './tool-execution.ts'

export type ToolRecording = {
  readonly run: Run
  readonly clock: Clock
  readonly audit: AuditLog
  /** Keeps a long result whole; returns its id. */
  readonly keep: (
    key: string,
    name: string,
    content: string,
  ) => Promise<{ id: string; filename: string }>
  readonly questionMs: number
  readonly resultCharsMax: number
  /** Counted as JSON. */
  readonly resultBytesMax: number
  readonly questionBytesMax: number
}

/** The excerpt that the model reads of a long result; undefined where it reads all of it. */
function excerptOf(
  whole: string,
  { resultCharsMax, resultBytesMax }: ToolRecording,
): string | undefined {
  const excerpt = clip(whole.slice(0, resultCharsMax), resultBytesMax)
  return excerpt.length < whole.length ? excerpt : undefined
}

export function createToolRecords(journal: Journal, step: Step, recording: ToolRecording) {
  const { run, clock, audit } = recording
  const infoOf = ({ call }: CallState) => infoOfCall(run, step, call.id)
  const place = ({ call }: CallState) => ({ step: step.index, call_id: call.id, name: call.name })
  const begins = (one: CallState, args: Json) =>
    event('tool_call', { ...place(one), arguments: args })
  const audited = (one: CallState, tool: Tool | undefined) => ({
    ...infoOf(one),
    tool: one.call.name,
    effect: tool ? effectOf(tool) : 'none',
    step: step.index,
  })

  /** The body is about to run. */
  const begin = async (one: CallState, tool: Tool, args: Json): Promise<void> => {
    journal.write(begins(one, args))
    await audit.began(run, audited(one, tool))
  }
  const finish = async (one: CallState, outcome: Made): Promise<void> => {
    const whole = outcome.content
    const excerpt = excerptOf(whole, recording)
    const records: NewEvent[] = []
    const recordArtifact = ({ id, filename }: { id: string; filename: string }) =>
      records.push(
        event('artifact', { artifact_id: id, filename, step: step.index, call_id: one.call.id }),
      )
    if (outcome.artifact) recordArtifact(outcome.artifact)
    const kept =
      excerpt === undefined
        ? undefined
        : await recording.keep(`result:${infoOf(one).key}`, one.call.name, whole)
    if (kept) recordArtifact(kept)
    const content = kept
      ? `${excerpt}\n[${whole.length - excerpt!.length} more characters in the artifact ${kept.id}]`
      : whole
    journal.write(
      ...records,
      event('tool_result', {
        ...place(one),
        status: outcome.status,
        content,
        truncated: kept !== undefined,
        artifact_id: kept?.id ?? null,
      }),
    )
    await audit.ended(run, infoOf(one).key, outcome.status)
  }
  /**
   * Ends a call whose body never ran. Both records go out in one write: a driver that takes over
   * must not think that the body has begun.
   */
  const refuse = async (
    one: CallState,
    tool: Tool | undefined,
    { status, content }: Outcome,
  ): Promise<void> => {
    await audit.refused(run, audited(one, tool), status)
    journal.write(
      begins(one, one.call.arguments),
      event('tool_result', { ...place(one), status, content, truncated: false, artifact_id: null }),
    )
  }
  const ask = (one: CallState, kind: Asked['kind'], data: Record<string, Json>) => {
    journal.write(
      event(kind, {
        ...data,
        ...place(one),
        question_id: clock.id(),
        expires_at: new Date(clock.now() + recording.questionMs).toISOString(),
      }),
    )
  }
  const settle = async (one: CallState, result: Result): Promise<void> => {
    if (!('ask' in result)) return finish(one, result)
    const { kind, ...question } = result.ask
    const bytes = jsonBytes(question)
    if (bytes > recording.questionBytesMax)
      return finish(one, {
        status: 'failed',
        content:
          `The tool asked a question of ${bytes} bytes, more than ` +
          `${recording.questionBytesMax}.`,
      })
    ask(one, kind, question as unknown as Record<string, Json>)
  }

  return { begin, finish, refuse, ask, settle }
}
