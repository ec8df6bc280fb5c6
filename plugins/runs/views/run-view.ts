// One run, for a client that asks now and then instead of following its events.
import type { Static } from 'typebox'
import type { RunView } from '#contracts/run-views.ts'
import type { Caller } from '#kernel'
import type { Eventlog, ScopedEventlog } from '#ports/eventlog.ts'
import type { ArtifactsApi } from '../../files/api.ts'
import { streamOf, type Run } from '../collections.ts'
import { repliesOf } from '../engine/replies.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import { readState } from '../journal/journal.ts'
import { answerOf, askedIn, usageOf, type State } from '../journal/state.ts'
import type { ReadTexts } from '../sessions/copies.ts'
import { runSummary } from '../run-summary.ts'
import type { Standings } from './standing.ts'

type Reply = Static<typeof RunView>
type Deps = {
  eventlog: ScopedEventlog
  ended: SeenEnded
  readTexts: ReadTexts
  artifacts: ArtifactsApi
  standings: Standings
}
/** The events `usage` and `error` are among the last of a run. */
const lastEvents = 8

const usageReply = ({ inputTokens, outputTokens }: NonNullable<Run['usage']>): Reply['usage'] => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
})
/** The questions that nobody has answered yet, in the order of asking. */
function openQuestions(run: Run, state: State): Reply['questions'] {
  const replied = new Set(repliesOf(run).map(({ number }) => number))
  return askedIn(state)
    .filter(({ answered, asked }) => !answered && !replied.has(asked.number))
    .map(({ asked }) => ({ type: asked.kind, data: asked.data }))
}
/** How a run of an earlier version ended, whose document does not say it. */
async function endIn(log: Eventlog, { id }: Run): Promise<Pick<Reply, 'usage' | 'error'>> {
  const { last } = await log.bounds(streamOf(id))
  const events = await log.read(streamOf(id), { after: Math.max(0, last - lastEvents) })
  const find = <T>(type: string) =>
    events.find(event => event.type === type && !event.hidden)?.data as T | undefined
  const usage = find<NonNullable<Reply['usage']>>('usage')
  return {
    usage: usage
      ? {
          input_tokens: usage.input_tokens,
          output_tokens: usage.output_tokens,
          total_tokens: usage.total_tokens,
        }
      : null,
    error: find<NonNullable<Reply['error']>>('error') ?? null,
  }
}

export function createRunView({ eventlog, ended, readTexts, artifacts, standings }: Deps) {
  const closed = async (caller: Caller, run: Run) => {
    const [whole] = await readTexts(caller, [run])
    const end =
      run.usage || run.copied
        ? { usage: run.usage ? usageReply(run.usage) : null, error: run.error ?? null }
        : await endIn(eventlog.tenant(caller), run)
    // A fork that was cut at the request does not show the answer; its events do not, either.
    const answer = run.copied && run.answerCut ? '' : (whole!.answer ?? '')
    return { ...end, answer, questions: [] }
  }
  const open = async (caller: Caller, run: Run) => {
    const state = await readState(eventlog.tenant(caller), streamOf(run.id))
    return {
      usage: usageReply(usageOf(state)),
      error: null,
      answer: answerOf(state),
      questions: openQuestions(run, state),
    }
  }
  return async (caller: Caller, runId: string): Promise<Reply> => {
    const run = await ended(await standings.find(caller, runId))
    const { status, queueSeq } = await standings.present(run)
    const [work, made] = await Promise.all([
      run.phase === 'closed' ? closed(caller, run) : open(caller, run),
      artifacts.listOfRun(caller, runId),
    ])
    return { ...runSummary(run), status, queue_seq: queueSeq, ...work, artifacts: made }
  }
}
export type ReadRun = ReturnType<typeof createRunView>
