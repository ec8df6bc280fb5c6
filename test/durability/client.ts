// A client as a user would write it: it asks again under one key until it is answered, and comes
// back to a stream with its cursor.
import * as assert from 'uvu/assert'
import { tokenOf, type Signed } from '../support/process.ts'

export type Seen = {
  readonly id: number
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}
export type Started = {
  readonly run_id: string
  readonly session_id: string
  readonly resumed: boolean
}
/** `frames`: what was seen, whole, by its id. `broke`: how often the stream ended too early. */
export type Follower = {
  readonly runId: string
  readonly sessionId: string
  readonly key: string
  readonly frames: Map<number, string>
  readonly repeated: string[]
  last: number
  ended: boolean
  broke: number
  /** Hangs up; the follower comes back by itself. */
  drop(): void
}
export type Client = ReturnType<typeof createClient>

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
export const framesOf = (text: string) =>
  text
    .split('\n\n')
    .filter(frame => frame.startsWith('id: '))
    .map(frame => [Number(/^id: (\d+)/.exec(frame)![1]), frame] as const)
export const seenIn = (frame: string): Seen => {
  const [, id, type, data] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(frame)!
  return { id: Number(id), type: type!, data: JSON.parse(data!) as Seen['data'] }
}
export const isTerminal = ({ type }: Pick<Seen, 'type'>) => type === 'done' || type === 'error'

/** The answer that a client shows who folds by step, attempt and keep. */
export function textOf(frames: Iterable<string>): string {
  const steps = new Map<number, { text: string; attempt: number }>()
  for (const frame of frames) {
    const { type, data } = seenIn(frame)
    const {
      step = 0,
      text = '',
      attempt,
      keep,
    } = data as { step?: number; text?: string; attempt?: number; keep?: number }
    const at = steps.get(step) ?? { text: '', attempt: 1 }
    if (type === 'superseded')
      steps.set(step, { text: at.text.slice(0, keep), attempt: at.attempt + 1 })
    if (type !== 'token') continue
    assert.is(attempt, at.attempt)
    steps.set(step, { text: at.text + text, attempt: at.attempt })
  }
  return [...steps.values()].map(({ text }) => text).join('')
}

/**
 * How long an answer is waited for before the same is asked again, unless the test says otherwise.
 */
const patienceUsualMs = 3000

/**
 * A token lives for fifteen minutes by the clock of whoever is asked, and some tests take longer.
 */
export function createClient(
  base: string,
  { token, apiKey }: Pick<Signed, 'token' | 'apiKey'>,
  patienceMs = patienceUsualMs,
) {
  let closed = false
  let bearer = token
  let renewing: Promise<void> | undefined
  const headers = () => ({ authorization: `Bearer ${bearer}` })
  /** All who are refused at once wait for one new token. */
  const renew = (refused: string): Promise<void> =>
    refused !== bearer
      ? Promise.resolve()
      : (renewing ??= tokenOf(base, apiKey)
          .then(next => {
            bearer = next
          })
          .finally(() => {
            renewing = undefined
          }))

  /** Asked again while nobody answers, or the answer is that it is not possible now. */
  async function ask<T>(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly body: T }> {
    for (; !closed; await pause(50)) {
      const used = bearer
      try {
        const response = await fetch(base + path, {
          method,
          headers: { ...headers(), ...(body ? { 'content-type': 'application/json' } : {}) },
          signal: AbortSignal.timeout(patienceMs),
          ...(body ? { body: JSON.stringify(body) } : {}),
        })
        const text = await response.text()
        if (response.status === 401) await renew(used)
        else if (response.status !== 429 && response.status !== 503)
          return {
            status: response.status,
            body: (text === '' ? undefined : JSON.parse(text)) as T,
          }
      } catch (error) {
        if (error instanceof SyntaxError) throw error
      }
    }
    throw new Error('The client was closed.')
  }
  async function get<T>(path: string): Promise<T> {
    const { status, body } = await ask<T>('GET', path)
    assert.is(status, 200, `${path}: ${JSON.stringify(body)}`)
    return body
  }

  /** One connection, as far as it goes. */
  async function read(
    follower: Follower,
    hangUp: AbortSignal,
    onEvent: (event: Seen) => void,
  ): Promise<void> {
    const used = bearer
    const response = await fetch(`${base}/runs/${follower.runId}/events`, {
      signal: hangUp,
      headers: {
        ...headers(),
        ...(follower.last > 0 ? { 'last-event-id': String(follower.last) } : {}),
      },
    })
    if (response.status === 503) return
    if (response.status === 401) return renew(used)
    assert.is(response.status, 200)
    let rest = ''
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const whole = (rest + part).lastIndexOf('\n\n') + 2
      for (const [id, frame] of framesOf((rest + part).slice(0, whole))) {
        if (id <= follower.last) follower.repeated.push(frame)
        follower.frames.set(id, frame)
        follower.last = Math.max(follower.last, id)
        const seen = seenIn(frame)
        if (isTerminal(seen)) follower.ended = true
        onEvent(seen)
      }
      rest = (rest + part).slice(whole)
    }
  }

  return {
    ask,
    get,
    async start(key: string, request: object = { message: `run ${key}` }): Promise<Started> {
      const { status, body } = await ask<Started>('POST', '/chat', {
        ...request,
        idempotency_key: key,
      })
      assert.is(status, 200, JSON.stringify(body))
      return body
    },
    /** Reads to the end of the run, coming back with its cursor whenever the connection breaks. */
    follow(
      { run_id: runId, session_id: sessionId }: Started,
      key: string,
      onEvent: (event: Seen) => void = () => {},
    ): { readonly follower: Follower; readonly over: Promise<void> } {
      let hangUp = new AbortController()
      const follower: Follower = {
        runId,
        sessionId,
        key,
        frames: new Map(),
        repeated: [],
        last: 0,
        ended: false,
        broke: 0,
        drop: () => hangUp.abort(),
      }
      const toTheEnd = async () => {
        for (; !follower.ended && !closed; await pause(50)) {
          hangUp = new AbortController()
          try {
            await read(follower, hangUp.signal, onEvent)
          } catch (error) {
            if ((error as { code?: string }).code === 'ERR_ASSERTION') throw error
          }
          if (follower.ended) return
          follower.broke++
        }
      }
      return { follower, over: toTheEnd() }
    },
    async log(runId: string) {
      for (;;) {
        const used = bearer
        const response = await fetch(`${base}/runs/${runId}/events`, { headers: headers() })
        if (response.status !== 401) return framesOf(await response.text())
        await renew(used)
      }
    },
    balance: () => get<{ balance: number; held: number; available: number }>('/balance'),
    /** All items of a list, page by page. */
    async all<T>(path: string): Promise<T[]> {
      const items: T[] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page: { items: T[]; next_cursor?: string } = await get(
          `${path}?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`,
        )
        items.push(...page.items)
        cursor = page.next_cursor
      }
      return items
    },
    /** Nothing is asked any more, and nothing followed. */
    close: () => {
      closed = true
    },
  }
}
