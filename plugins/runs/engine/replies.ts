// Takes replies to a run's questions into the run's document. Each question gets one reply, in any
// order: from its user, or from its deadline.
// The driver takes the replies over into the journal.
import { fault, type Json } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { jsonBytes } from '../journal/bytes.ts'
import { Runs, streamOf, type Reply, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { readState } from '../journal/journal.ts'
import { answerFor } from '../tools/questions.ts'
import { askedIn, type Asked, type CallState, type State } from '../journal/state.ts'

/** How often the run is read again while other replies change it. */
const triesMax = 20

const closed = (why: string) => fault('QUESTION_CLOSED', { why })
/** The replies that the document holds. Earlier versions stored one in the field `reply`. */
export const repliesOf = ({ replied = [], reply }: Run): readonly Reply[] =>
  reply ? [reply, ...replied] : replied
/** The replies that the journal lacks. */
const pendingOf = (run: Run, state: State): Reply[] => {
  const answered = new Set(
    askedIn(state)
      .filter(one => one.answered)
      .map(({ asked }) => asked.number),
  )
  return repliesOf(run).filter(({ number }) => !answered.has(number))
}

type Question = CallState & { readonly asked: Asked }
/** The question that an answer is for. */
function questionFor(
  state: State,
  pending: readonly Reply[],
  questionId: string | undefined,
): Question {
  const isOpen = ({ asked, answered }: Question) =>
    !answered && !pending.some(({ number }) => number === asked.number)
  const all = askedIn(state)
  const open = all.filter(isOpen)
  if (questionId === undefined) {
    if (open.length > 1)
      throw fault('INVALID_FIELD', {
        field: 'question_id',
        why: `is needed, for ${open.length} questions are open`,
      })
    if (!open[0])
      throw closed(all.length === 0 ? 'nothing was asked' : 'it was answered, or its time is over')
    return open[0]
  }
  const found = all.find(({ asked }) => asked.id === questionId.toLowerCase())
  if (!found) throw fault('NOT_FOUND', { what: 'question of this run' })
  if (!isOpen(found))
    throw closed(found.answered?.status === 'expired' ? 'its time is over' : 'it was answered')
  return found
}

type Deps = { store: ScopedStorage; eventlog: ScopedEventlog; clock: Clock; config: RunsConfig }
export type Replies = ReturnType<typeof createReplies>

export function createReplies({ store, eventlog, clock, config }: Deps) {
  /**
   * Adds the replies that `make` returns for the run's current state; undefined where there are
   * none. A condition ensures that no other reply came since the run was read.
   */
  const add = async (
    seen: Run,
    make: (state: State, pending: readonly Reply[]) => readonly Reply[],
  ): Promise<Run | undefined> => {
    let run: Run | undefined = seen
    for (let tries = 0; tries < triesMax && run; tries++) {
      if (run.phase === 'closed') throw closed('the run has ended')
      if (run.cancelAsked) throw closed('the run is being cancelled')
      const state = await readState(eventlog.tenant(run), streamOf(run.id))
      const pending = pendingOf(run, state)
      const made = make(state, pending)
      if (made.length === 0) return undefined
      const set = { replied: [...pending, ...made], due: 0 }
      const unheard = {
        phase: 'placed',
        replies: run.replies,
        cancelAsked: { exists: false },
      } as const
      const taken: Run | undefined = await store
        .tenant(run)
        .update(
          Runs,
          run.id,
          { set, unset: ['reply'], inc: { replies: made.length } },
          { if: unheard },
        )
      if (taken) return taken
      run = await store.tenant(run).get(Runs, run.id)
    }
    throw closed('it was answered, its time is over, or the run is being cancelled')
  }
  return {
    /**
     * Takes the answer to one question; without an id, to the only one that is open. Throws
     * INVALID_FIELD, NOT_FOUND or QUESTION_CLOSED.
     */
    async answer(
      run: Run,
      questionId: string | undefined,
      answer: Json,
    ): Promise<{ readonly run: Run; readonly questionId: string }> {
      const bytes = jsonBytes(answer)
      if (bytes > config.answer_bytes_max)
        throw fault('INVALID_FIELD', {
          field: 'answer',
          why: `takes ${bytes} bytes, more than ${config.answer_bytes_max}`,
        })
      let answered = ''
      const taken = await add(run, (state, pending) => {
        const { asked } = questionFor(state, pending, questionId)
        answered = asked.id
        return [{ number: asked.number, status: 'answered', answer: answerFor(asked, answer) }]
      })
      return { run: taken!, questionId: answered }
    },
    /** Replies to every question whose deadline has passed; undefined where there is none. */
    expire: (run: Run): Promise<Run | undefined> =>
      add(run, (state, pending) => {
        const isDue = ({ asked, answered }: Question) =>
          !answered &&
          Date.parse(String(asked.data['expires_at'])) <= clock.now() &&
          !pending.some(({ number }) => number === asked.number)
        return askedIn(state)
          .filter(isDue)
          .map(({ asked }) => ({ number: asked.number, status: 'expired', answer: null }))
      }),
  }
}
