// A provider's adapter that talks to a local server, and time that passes while it does.
import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { AdapterContext } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ModelDelta, ModelProvider, ModelRequest } from '#ports/models.ts'
import anthropic from '../../../adapters/models/anthropic.ts'
import { manualClock, type ManualClock } from '../../../adapters/clock/manual.ts'
import { systemClock } from '../../../adapters/clock/system.ts'
import openai from '../../../adapters/models/openai.ts'
import { opening } from '../../conformance/opening.ts'
import type { Test } from '../../conformance/runner.ts'
import { startModelServer, type ModelServer, type WireName } from './server.ts'
import type { Asked, Turn } from './turn.ts'

const wireNames: readonly WireName[] = ['chat', 'responses', 'messages']
/** One test for each wire. */
export const eachWire =
  (test: Test) =>
  (title: string, run: (wire: WireName) => Promise<void>): void => {
    for (const wire of wireNames) test(`${wire}: ${title}`, () => run(wire))
  }
type Stage = {
  readonly server: ModelServer
  readonly provider: ModelProvider
  readonly clock: ManualClock
  readonly logged: string[]
}
type Set = {
  readonly options?: string
  readonly key?: string
  readonly parts?: Partial<AdapterContext>
}

export const openAt = (
  name: WireName,
  base: string,
  options: string,
  parts: Partial<AdapterContext> & Pick<AdapterContext, 'clock'>,
): Promise<ModelProvider> =>
  name === 'messages'
    ? anthropic.open(opening(`anthropic:${base}?model=m&${options}`, parts))
    : openai.open(opening(`openai:${base}?model=m&api=${name}&${options}`, parts))

/**
 * A server that does as it is told, call by call (the last turn for every further one), and the
 * provider before it; both end with the play.
 */
export async function onStage<T>(
  name: WireName,
  turns: readonly Turn[] | ((asked: Asked, call: number) => Turn),
  play: (stage: Stage) => Promise<T>,
  { options = '', key, parts = {} }: Set = {},
): Promise<T> {
  const answer =
    typeof turns === 'function'
      ? turns
      : (_: Asked, call: number): Turn => turns[Math.min(call, turns.length) - 1]!
  const server = await startModelServer(name, { answer, ...(key === undefined ? {} : { key }) })
  const clock = manualClock()
  const logged: string[] = []
  const provider = await openAt(name, server.base, `timeout_ms=3600000&${options}`, {
    clock,
    log: (...line) => logged.push(JSON.stringify(line)),
    ...parts,
  })
  try {
    return await play({ server, provider, clock, logged })
  } finally {
    await provider.close()
    await server.stop()
  }
}

export type Heard = {
  readonly batches: (readonly ModelDelta[])[]
  readonly deltas: ModelDelta[]
  readonly error: (Error & { code?: string; retryAfterMs?: number }) | undefined
}
/** All that came, and the error after which nothing more did. `batches` grows meanwhile. */
export async function hear(
  provider: ModelProvider,
  asked: Partial<ModelRequest> = {},
  batches: (readonly ModelDelta[])[] = [],
): Promise<Heard> {
  let error: Heard['error']
  try {
    for await (const batch of provider.stream({
      model: 'm',
      messages: [{ role: 'user', content: 'Hello' }],
      signal: new AbortController().signal,
      ...asked,
    }))
      batches.push(batch)
  } catch (thrown) {
    error = thrown as Heard['error']
  }
  return { batches, deltas: batches.flat(), error }
}

/**
 * Lets the clock run on, half a second at a time, until the work is done: what sleeps wakes, what
 * waits for a socket gets its turn.
 */
export async function passing<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let done = false
  const ended = work.finally(() => {
    done = true
  })
  ended.catch(() => 'seen by the caller')
  while (!done) {
    await setTimeout(1)
    if (clock.sleeping() > 0) await clock.advance(500)
  }
  return ended
}
/** A clock that leaps, so that checkpoints come as often as they may. */
export const leaping = (): Clock => {
  let ms = 0
  return { ...systemClock(), monotonic: () => (ms += 1000) }
}
/** Waits for something that a socket brings about. */
export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2000 && !holds(); tries++) await setTimeout(1)
  if (!holds()) throw new Error('It did not come about.')
}

export const good: Turn = { text: 'All is well.' }
/** The deltas of one type. */
export const of = <T extends ModelDelta['type']>({ deltas }: Heard, type: T) =>
  deltas.filter((delta): delta is Extract<ModelDelta, { type: T }> => delta.type === type)
/** Behind the text. */
export const after =
  (part: string) =>
  (body: string): number => {
    assert.ok(body.includes(part), `the answer holds ${part}`)
    return body.indexOf(part) + part.length
  }
/** Behind the whole frame that holds it. */
export const afterFrame =
  (part: string | RegExp) =>
  (body: string): number => {
    const at = body.search(part)
    assert.ok(at >= 0, `the answer holds ${part}`)
    return body.indexOf('\n\n', at) + 2
  }
/** The frame behind the one with the first word. */
export const second = { chat: 3, responses: 6, messages: 5 }
