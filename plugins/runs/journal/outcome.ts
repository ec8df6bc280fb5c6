// Shows a run as ended as soon as its stream says so. The end is written to the stream first; the
// document follows after the session has gone on.
// A reader that has seen `done` must find the answer.
import { terminalTypes } from '#contracts/events.ts'
import type { Clock } from '#ports/clock.ts'
import type { LoggedEvent, ScopedEventlog } from '#ports/eventlog.ts'
import { streamOf, type Run } from '../collections.ts'
import { readState } from './journal.ts'
import { creditsFor } from '../price.ts'
import { clip } from './bytes.ts'
import type { Ending, Terminal } from './records.ts'
import type { Texts } from './texts.ts'
import { answerOf, heldBeyond, type State } from './state.ts'

/** Bytes of the sentence that a run's document keeps of its error. */
const errorBytesMax = 2000

export const isTerminal = ({ type, hidden }: LoggedEvent) =>
  !hidden && (terminalTypes as readonly string[]).includes(type)
/** How the run ended, where the stream holds its terminal event. */
export const alreadyEnded = ({ terminal, ending }: State): Ending | undefined =>
  terminal && (ending ?? { terminal, usage: { inputTokens: 0, outputTokens: 0 }, charged: false })
export const statusOf = (terminal: Terminal) =>
  terminal.type === 'error' ? 'failed' : terminal.status
/** What the run may be charged at its end. */
export const creditsOf = (run: Run, state: State, { usage, charged }: Ending): number =>
  charged ? Math.min(run.hold + heldBeyond(state), creditsFor(run.price, usage)) : 0
/** The fields of the run's document once it has ended. */
export const outcomeOf = (
  state: State,
  { terminal, usage }: Ending,
  credits: number,
  now: number,
) =>
  ({
    phase: 'closed',
    status: statusOf(terminal),
    endedAt: now,
    answer: answerOf(state),
    credits,
    usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens },
    ...(terminal.type === 'error'
      ? { error: { code: terminal.code, detail: clip(terminal.detail, errorBytesMax) } }
      : {}),
  }) as const

/**
 * Returns the run with its whole texts. With `summary`, the texts are the excerpts of the document.
 */
export type SeenEnded = (run: Run, detail?: unknown) => Promise<Run>
export const createEnded =
  ({
    eventlog,
    clock,
    texts,
  }: {
    eventlog: ScopedEventlog
    clock: Clock
    texts: Texts
  }): SeenEnded =>
  async (seen, detail) => {
    const run = detail === 'summary' ? seen : await texts.whole(seen)
    if (run.phase !== 'placed' || run.status !== 'running') return run
    const log = eventlog.tenant(run)
    const stream = streamOf(run.id)
    const { last } = await log.bounds(stream)
    const [newest] = last === 0 ? [] : await log.read(stream, { after: last - 1, limit: 1 })
    if (!newest || !isTerminal(newest)) return run
    const state = await readState(log, stream)
    const ending = alreadyEnded(state)
    return ending
      ? { ...run, ...outcomeOf(state, ending, creditsOf(run, state, ending), clock.now()) }
      : run
  }
