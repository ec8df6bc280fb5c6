// Runs the body of one tool call: within its time limit, and again where its effect allows that.
import { isFault, type Json } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Question, Tool, ToolCallInfo } from '../../api.ts'
import type { Outcome } from '../../journal/state.ts'
import type { RunSpans } from '../../telemetry/spans.ts'
import type { Cancellation } from '../cancellation.ts'
import type { Info } from './tool-call-info.ts'

export type ToolExecuting = {
  readonly clock: Clock
  readonly log: Log
  readonly cancellation: Cancellation
  readonly spans: RunSpans
  /**
   * Resolves when all journalled records are on disk, and the storage confirms our lease. Rejects
   * otherwise.
   */
  readonly secure: () => Promise<void>
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
export const unknownOutcome: Outcome = {
  status: 'unknown',
  content:
    'It is not known whether this call was carried out. It was not repeated. Tell the ' +
    'user, and do not call it again unless the user asks for it.',
}

export const effectOf = ({ effect = 'once' }: Tool) => effect

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
  { clock, cancellation, log }: ToolExecuting,
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
export type Made = Outcome & {
  readonly artifact?: { readonly id: string; readonly filename: string }
}
const madeOf = ({ artifact }: Pick<Made, 'artifact'>) => (artifact ? { artifact } : {})
export type Result = Made | { readonly ask: Question }
type Tried = Result & Pick<Failure, 'away'>

/** A call whose body runs. */
export type Execution = {
  readonly tool: Tool
  readonly args: Json
  readonly info: Info
  readonly callId: string
}

/** Runs the body of a call. */
export async function once(
  { tool, args, info, callId }: Execution,
  calling: ToolExecuting,
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
export async function again(execution: Execution, calling: ToolExecuting): Promise<Tried> {
  const { tool, info } = execution
  if (effectOf(tool) !== 'once') return once(execution, calling)
  const { probe } = tool
  const found = probe ? await within(tool, info, call => probe(call.key, call), calling) : undefined
  if (found && !('answer' in found) && found.away) return { ...unknownOutcome, away: true }
  if (!found || !('answer' in found) || found.answer === undefined) return unknownOutcome
  if (found.answer === 'not done') return once(execution, calling)
  return 'ask' in found.answer
    ? found.answer
    : { status: 'ok', content: found.answer.content, ...madeOf(found.answer) }
}
/**
 * Repeats a call that a part of the platform cut short, where its effect allows that. A storage
 * comes back one connection at a time, so one repetition is not enough.
 * A part that stays away is reported. While the storage is away, another driver continues.
 */
export async function persist(
  execution: Execution,
  calling: ToolExecuting,
  first: typeof once,
): Promise<Result> {
  const { tool } = execution
  const { clock, cancellation } = calling
  let tried = await first(execution, calling)
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
    tried = await again(execution, calling)
  }
  return tried
}
