// A run's stream: the events that clients see and, hidden among them, the engine's own records. All state of a run is a fold of it.
import type { Json } from '#kernel'
import type { Eventlog, LoggedEvent, NewEvent } from '#ports/eventlog.ts'
import type { Usage } from '#ports/models.ts'

/** `@n` is the record's version: what later versions of the engine must be able to read. */
export type Thought = { step: number; attempt: number; finish: string; input_tokens: number; output_tokens: number }
export const took = (epoch: number): NewEvent => ({ type: 'took@1', hidden: true, data: { epoch } })
export const thought = (data: Thought): NewEvent => ({ type: 'thought@1', hidden: true, data })
/** How the run ends, decided once: a driver that takes over here settles this and nothing else. */
export const ending = ({ terminal, usage }: Ending): NewEvent => ({ type: 'ending@1', hidden: true, data: { terminal, usage } as unknown as Json })
export const event = (type: string, data: Json): NewEvent => ({ type, data })

export type Terminal = { readonly type: 'done'; readonly status: 'done' | 'cancelled' } | { readonly type: 'error'; readonly code: string; readonly detail: string }
export type Ending = { readonly terminal: Terminal; readonly usage: Usage }
export type State = {
  /** The seq of the last record. */
  head: number
  epoch: number
  /** The newest attempt of the model call, 0 when there was none. */
  attempt: number
  /** Text that clients were shown in the newest attempt and that still stands. */
  text: string
  accepted: (Usage & { readonly finish: string }) | undefined
  ending: Ending | undefined
  terminal: Terminal | undefined
}

export const emptyState = (): State => ({ head: 0, epoch: 0, attempt: 0, text: '', accepted: undefined, ending: undefined, terminal: undefined })

/** Adds one record to the state. Unknown types change nothing: newer versions may have written them. */
export function foldOne(state: State, { seq, type, data }: LoggedEvent): State {
  const fields = data as Record<string, never>
  state.head = seq
  switch (type) {
    case 'took@1': state.epoch = fields['epoch']!; break
    case 'token':
      if (fields['attempt']! !== state.attempt) Object.assign(state, { attempt: fields['attempt'], text: '' })
      state.text += fields['text']!
      break
    case 'superseded':
      state.attempt = Math.max(state.attempt, fields['attempt']!)
      state.text = state.text.slice(0, fields['keep'])
      break
    case 'thought@1':
      state.attempt = fields['attempt']!
      state.accepted = { inputTokens: fields['input_tokens']!, outputTokens: fields['output_tokens']!, finish: fields['finish']! }
      break
    case 'ending@1': state.ending = data as unknown as Ending; break
    case 'done': state.terminal = { type: 'done', status: fields['status']! }; break
    case 'error': state.terminal = { type: 'error', code: fields['code']!, detail: fields['detail']! }; break
  }
  return state
}

/** Reads the whole stream in bounded pages. */
export async function readState(log: Eventlog, stream: string): Promise<State> {
  const state = emptyState()
  for (;;) {
    const page = await log.read(stream, { after: state.head, limit: 1000 })
    page.forEach(record => foldOne(state, record))
    if (page.length === 0) return state
  }
}

export type Journal = {
  readonly state: State
  /** Adds records; they go out in order, one append at a time, what comes meanwhile in the next. Throws what a former append failed with. */
  write(...records: NewEvent[]): void
  /** What an append failed with: nothing more can be written by this driver. */
  failure(): unknown
  /** So much waits that the writer should pause. */
  crowded(): boolean
  /** Resolves when all that was written is applied. */
  settled(): Promise<void>
}

/** How many records may wait for their append before the writer pauses. */
const pendingMax = 256

/** Appends where the reader left off and nowhere else: another writer in between means that the lease is lost, and STREAM_MOVED ends this driver. */
export function createJournal(log: Eventlog, stream: string, state: State): Journal {
  let pending: NewEvent[] = [], flight: Promise<void> | undefined, failure: unknown
  const flush = async () => {
    try {
      while (pending.length > 0) {
        const records = pending, expect = state.head
        pending = []
        await log.append(stream, records, { expect })
        records.forEach((record, i) => foldOne(state, { ...record, seq: expect + i + 1 }))
      }
    } catch (error) {
      failure = error
    } finally {
      flight = undefined
    }
  }
  return {
    state,
    write(...records) {
      if (failure) throw failure
      pending.push(...records)
      flight ??= flush()
    },
    failure: () => failure,
    crowded: () => pending.length > pendingMax,
    async settled() {
      while (flight) await flight
      if (failure) throw failure
    },
  }
}
