// The tool calls of one answer: intent, body, outcome. Each is journalled before the next begins.
import { createHash } from 'node:crypto'
import { isFault, type Json } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Question, Tool, ToolCallInfo } from '../api.ts'
import type { AuditLog } from '../tools/audit-log.ts'
import { clip, jsonBytes } from '../journal/bytes.ts'
import type { Run } from '../collections.ts'
import type { Journal } from '../journal/journal.ts'
import { outcomeOf } from '../tools/questions.ts'
import { event } from '../journal/records.ts'
import type { Asked, CallState, Outcome, Step } from '../journal/state.ts'
import type { Cancellation } from './cancellation.ts'
import type { Allowed, ToolRegistry } from '../tools/tool-registry.ts'
import type { RunSpans } from '../telemetry/spans.ts'

export type ToolCalling = {
  readonly run: Run
  readonly toolRegistry: ToolRegistry
  readonly allowed: Allowed
  readonly clock: Clock
  readonly log: Log
  readonly cancellation: Cancellation
  readonly spans: RunSpans
  readonly audit: AuditLog
  /**
   * Resolves when all journalled records are on disk, and the storage confirms our lease. Rejects
   * otherwise.
   */
  readonly secure: () => Promise<void>
  /** Resolves when everything journalled so far is on disk. */
  readonly written: () => Promise<void>
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
const timeoutDefaultMs = 30_000
const errorCharsMax = 500
/**
 * Retries while a part of the platform is unavailable, and the first pause in milliseconds. Pauses
 * double up to a bound. Together they take about seven seconds.
 */
const awayTriesMax = 8
const awayMs = 50
const awayMsMax = 2000
const unknownOutcome: Outcome = {
  status: 'unknown',
  content:
    'It is not known whether this call was carried out. It was not repeated. Tell the ' +
    'user, and do not call it again unless the user asks for it.',
}

/**
 * The key of a call: the same for every try of it, and for no other call. It is a UUID (version 8,
 * RFC 9562 section 5.8) of the call's place in its run.
 */
export function keyOf(runId: string, step: number, callId: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([runId, step, callId]))
    .digest('hex')
  const start = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}`
  return `${start}-9${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

type Info = Omit<ToolCallInfo, 'signal'>
const effectOf = ({ effect = 'once' }: Tool) => effect

/**
 * Whether a part of the platform was unavailable. What the body did before may have taken effect.
 * STOPPING is no outcome: the next process continues.
 */
const isAway = (error: unknown): boolean =>
  isFault(error) && ['UNAVAILABLE', 'STORAGE_FULL', 'STOPPING'].includes(error.code)
/** `away`: it failed because a part of the platform was unavailable. */
type Failure = Outcome & { readonly away?: true }

/**
 * Runs a tool within its time limit; an outcome where the tool gave no answer. Rejects only when
 * the driver must stop. A body that ignores its signal is abandoned.
 */
async function within<T>(
  tool: Tool,
  info: Info,
  act: (info: ToolCallInfo) => T | Promise<T>,
  { clock, cancellation, log }: ToolCalling,
): Promise<{ readonly answer: T } | Failure> {
  const ms = tool.timeoutMs ?? timeoutDefaultMs
  const limit = new AbortController()
  const over = new AbortController()
  const driver = cancellation.signal()
  const signal = AbortSignal.any([driver, limit.signal])
  const late = clock.sleep(ms, over.signal).then(
    () => limit.abort(new Error('The time limit of the tool.')),
    () => undefined,
  )
  const ended = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
  try {
    return {
      answer: await Promise.race([Promise.resolve().then(() => act({ ...info, signal })), ended]),
    }
  } catch (error) {
    if (driver.aborted && cancellation.stopped() !== 'cancelled') throw error
    if (limit.signal.aborted || driver.aborted) {
      if (effectOf(tool) === 'once') return unknownOutcome
      return {
        status: 'failed',
        content: limit.signal.aborted
          ? `The tool took longer than ${ms} ms.`
          : 'The run was cancelled.',
      }
    }
    if (!isFault(error))
      log('warn', 'tool.failed', {
        tool: tool.name,
        run: info.runId,
        organisation: info.orgId,
        error,
      })
    return {
      status: 'failed',
      content: (error instanceof Error ? error.message : String(error)).slice(0, errorCharsMax),
      ...(isAway(error) ? { away: true } : {}),
    }
  } finally {
    over.abort()
    await late
    // A combined signal is never collected while it has listeners and has not aborted.
    limit.abort('over')
  }
}

/** `artifact`: what the call has made for the user. */
type Made = Outcome & { readonly artifact?: { readonly id: string; readonly filename: string } }
const madeOf = ({ artifact }: Pick<Made, 'artifact'>) => (artifact ? { artifact } : {})
type Result = Made | { readonly ask: Question }
type Tried = Result & Pick<Failure, 'away'>

async function once(
  tool: Tool,
  args: Json,
  info: Info,
  callId: string,
  calling: ToolCalling,
): Promise<Tried> {
  const act = () => within(tool, info, call => tool.run(args, call), calling)
  const result = await calling.spans.tool(
    tool.name,
    callId,
    act,
    outcome =>
      !('answer' in outcome) || ('isError' in outcome.answer && outcome.answer.isError === true),
  )
  if (!('answer' in result)) return result
  return 'ask' in result.answer
    ? result.answer
    : {
        status: result.answer.isError ? 'failed' : 'ok',
        content: String(result.answer.content),
        ...madeOf(result.answer),
      }
}

/** Continues a call whose body may have begun. `once` is repeated only after `not done`. */
async function again(
  tool: Tool,
  args: Json,
  info: Info,
  callId: string,
  calling: ToolCalling,
): Promise<Tried> {
  if (effectOf(tool) !== 'once') return once(tool, args, info, callId, calling)
  const { probe } = tool
  const found = probe ? await within(tool, info, call => probe(call.key, call), calling) : undefined
  if (found && !('answer' in found) && found.away) return { ...unknownOutcome, away: true }
  if (!found || !('answer' in found) || found.answer === undefined) return unknownOutcome
  if (found.answer === 'not done') return once(tool, args, info, callId, calling)
  return 'ask' in found.answer
    ? found.answer
    : { status: 'ok', content: found.answer.content, ...madeOf(found.answer) }
}
/**
 * Repeats a call that a part of the platform cut short, where its effect allows that. A storage
 * comes back one connection at a time, so one repetition is not enough.
 * A part that stays away is reported. While the storage is away, another driver continues.
 */
async function persist(
  tool: Tool,
  args: Json,
  info: Info,
  callId: string,
  calling: ToolCalling,
  first: typeof once,
): Promise<Result> {
  const { clock, cancellation } = calling
  let tried = await first(tool, args, info, callId, calling)
  for (
    let tries = 0;
    tries < awayTriesMax &&
    tried.away &&
    (effectOf(tool) !== 'once' || tool.probe) &&
    cancellation.stopped() !== 'cancelled';
    tries++
  ) {
    await calling.secure()
    await clock
      .sleep(
        Math.min(awayMsMax, awayMs * 2 ** tries) * (0.5 + clock.random()),
        cancellation.signal(),
      )
      .catch((error: unknown) =>
        cancellation.stopped() === 'cancelled' ? undefined : Promise.reject(error),
      )
    tried = await again(tool, args, info, callId, calling)
  }
  return tried
}

/** The excerpt that the model reads of a long result; undefined where it reads all of it. */
function excerptOf(
  whole: string,
  { resultCharsMax, resultBytesMax }: ToolCalling,
): string | undefined {
  const excerpt = clip(whole.slice(0, resultCharsMax), resultBytesMax)
  return excerpt.length < whole.length ? excerpt : undefined
}

/**
 * Brings each call of the step to its outcome, as far as that needs no user. Returns the questions
 * that are open then, in the order of asking.
 */
export async function callTools(
  journal: Journal,
  step: Step,
  calling: ToolCalling,
): Promise<readonly Asked[]> {
  const { run, toolRegistry, allowed, clock, audit } = calling
  const info = ({ call }: CallState): Info => ({
    orgId: run.orgId,
    userId: run.userId,
    runId: run.id,
    sessionId: run.sessionId,
    key: keyOf(run.id, step.index, call.id),
    timeZone: run.request.client_tz,
  })
  const place = ({ call }: CallState) => ({ step: step.index, call_id: call.id, name: call.name })
  const begins = (one: CallState, args: Json) =>
    event('tool_call', { ...place(one), arguments: args })

  const finish = async (one: CallState, outcome: Made): Promise<void> => {
    const whole = outcome.content
    const excerpt = excerptOf(whole, calling)
    const records: NewEvent[] = []
    const recordArtifact = ({ id, filename }: { id: string; filename: string }) =>
      records.push(
        event('artifact', { artifact_id: id, filename, step: step.index, call_id: one.call.id }),
      )
    if (outcome.artifact) recordArtifact(outcome.artifact)
    const kept =
      excerpt === undefined
        ? undefined
        : await calling.keep(`result:${info(one).key}`, one.call.name, whole)
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
    await audit.ended(run, info(one).key, outcome.status)
  }
  /**
   * Ends a call whose body never ran. Both records go out in one write: a driver that takes over
   * must not think that the body has begun.
   */
  const refuse = async (one: CallState, { status, content }: Outcome): Promise<void> => {
    const tool = toolRegistry.find(one.call.name, allowed)
    await audit.refused(
      run,
      {
        ...info(one),
        tool: one.call.name,
        effect: tool ? effectOf(tool) : 'none',
        step: step.index,
      },
      status,
    )
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
        expires_at: new Date(clock.now() + calling.questionMs).toISOString(),
      }),
    )
  }
  const settle = async (one: CallState, result: Result): Promise<void> => {
    if (!('ask' in result)) return finish(one, result)
    const { kind, ...question } = result.ask
    const bytes = jsonBytes(question)
    if (bytes > calling.questionBytesMax)
      return finish(one, {
        status: 'failed',
        content:
          `The tool asked a question of ${bytes} bytes, more than ` +
          `${calling.questionBytesMax}.`,
      })
    ask(one, kind, question as unknown as Record<string, Json>)
  }
  /** Why the call cannot be made; undefined where it can. */
  const refusal = ({ call, refused }: CallState, tool: Tool | undefined): Outcome | undefined => {
    const why =
      refused ??
      (tool
        ? toolRegistry.misfit(tool, call.arguments)
        : `There is no tool ${JSON.stringify(call.name.slice(0, 80))}.`)
    return why === undefined ? undefined : { status: 'failed', content: why }
  }

  const work = async (one: CallState): Promise<void> => {
    const tool = toolRegistry.find(one.call.name, allowed)
    const answered = one.asked && one.answered ? outcomeOf(one.asked, one.answered) : undefined
    if (answered) return one.begun ? finish(one, answered) : refuse(one, answered)
    const refused = refusal(one, tool)
    if (refused) return one.begun ? finish(one, unknownOutcome) : refuse(one, refused)
    const args = toolRegistry.argumentsOf(tool!, one.call.arguments)
    return act(one, tool!, args)
  }
  const act = async (one: CallState, tool: Tool, args: Json): Promise<void> => {
    if (tool.approval && !one.answered)
      return ask(one, 'approval', { action: tool.name, arguments: args })
    // The body began under another driver.
    if (one.begun)
      return settle(one, await persist(tool, args, info(one), one.call.id, calling, again))
    journal.write(begins(one, args))
    await audit.began(run, {
      ...info(one),
      tool: tool.name,
      effect: effectOf(tool),
      step: step.index,
    })
    // A body may kill its process, so its intent must be on disk before. For a body with effects,
    // the lease is checked once more.
    if (effectOf(tool) !== 'none') await calling.secure()
    else await calling.written()
    return calling.cancellation.whileActing(async () =>
      settle(one, await persist(tool, args, info(one), one.call.id, calling, once)),
    )
  }

  const isParallel = ({ call }: CallState) => {
    const tool = toolRegistry.find(call.name, allowed)
    return tool !== undefined && (tool.parallel ?? tool.effect === 'none')
  }
  const isWaiting = ({ asked, answered }: CallState) =>
    asked !== undefined && answered === undefined
  for (;;) {
    const open = step.calls.filter(({ outcome }) => outcome === undefined)
    // Parallel calls run together, up to the first that may not. That call waits for all calls
    // before it, and for their questions.
    const until = open.findIndex(one => !isParallel(one))
    const together = until === 0 ? open.slice(0, 1) : open.slice(0, until < 0 ? open.length : until)
    const ready = together.filter(one => !isWaiting(one))
    if (ready.length === 0) return together.map(({ asked }) => asked!)
    await Promise.all(ready.map(work))
    if (calling.cancellation.stopped() !== undefined) throw calling.cancellation.stopped()
  }
}
