// A provider of real models behind the port: everything except its wire format.
import { fault, hasCode } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelDelta, ModelProvider, ModelRequest } from '#ports/models.ts'
import { closedFault, closable } from '../../_shared/closable.ts'
import { inputTokensOf, modelOf } from './model-calls.ts'
import { createAnswer, type Answer } from './answer.ts'
import { batches } from './pacing/batches.ts'
import type { ServedModel } from './catalogue.ts'
import { failureOf } from './failures.ts'
import { createSemaphore } from './pacing/semaphore.ts'
import { retry } from './pacing/retry.ts'
import { openWire, type Wire } from './wire.ts'

/** Calls that may wait for a place; beyond them a call fails at once. */
const waitingMax = 1000
const waitingRetryMs = 1000
/** The kernel gives a health check two seconds: within less, the answer names the provider. */
const pingMs = 1500
/**
 * A provider that answered is not asked again for so long: health checks come often, and count
 * against its limits.
 */
const pingFreshMs = 10_000

export type Call = {
  readonly request: ModelRequest
  readonly model: ServedModel
  readonly fetch: Wire['fetch']
  readonly signal: AbortSignal
  readonly answer: Answer
}
export type Dialect = {
  /** Sends the request. Events as the library reads them, and what writes each into the answer. */
  send(
    call: Call,
  ): Promise<{ readonly events: AsyncIterable<unknown>; readonly read: (event: unknown) => void }>
  /** Asks for as little as shows that the provider is there and knows the key. */
  ask(how: Pick<Call, 'fetch' | 'signal'>): Promise<unknown>
}
export type ProviderSettings = {
  /** In the catalogue, in sentences and in the log. */
  readonly name: string
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** Calls at a time. */
  readonly concurrency: number
  readonly timeoutMs: number
  readonly models: readonly ServedModel[]
}
export type Surroundings = { readonly clock: Clock; readonly log: Log }

export function createProvider(
  dialect: Dialect,
  { name, concurrency, timeoutMs, models }: ProviderSettings,
  { clock, log }: Surroundings,
): ModelProvider {
  const what = `The model provider ${name}`
  const { check, shut } = closable(what)
  const closing = new AbortController()
  const line = createSemaphore({
    permits: concurrency,
    waitingMax: waitingMax,
    refuse: () =>
      fault(
        'MODEL_FAILED',
        { why: `too many calls wait for ${name}` },
        { retryAfterMs: waitingRetryMs },
      ),
  })
  const catalogue = models.map(({ wire: _, ...model }): Model => model)
  let asked: Promise<void> | undefined

  async function* once(
    request: ModelRequest,
    model: ServedModel,
    outer: AbortSignal,
  ): AsyncGenerator<readonly ModelDelta[]> {
    const left = new AbortController()
    const signal = AbortSignal.any([outer, left.signal])
    const wire = openWire({ who: name, clock, signal, timeoutMs })
    const answer = createAnswer({
      who: name,
      inputTokens: inputTokensOf(request),
      newId: () => clock.id(),
    })
    try {
      try {
        const { events, read } = await dialect.send({
          request,
          model,
          fetch: wire.fetch,
          signal,
          answer,
        })
        yield* batches(events, { hungry: wire.hungry, read, take: answer.take })
      } catch (error) {
        // What breaks after the finish breaks nothing: only the count may be missing.
        if (outer.aborted || !answer.hasFinished()) throw wire.cut() ?? error
      }
      // The libraries end an aborted stream as if it were whole.
      outer.throwIfAborted()
      if (!answer.hasFinished() && wire.cut() !== undefined) throw wire.cut()
      yield answer.end()
    } finally {
      left.abort()
    }
  }
  async function ask(): Promise<void> {
    const enough = new AbortController()
    const signal = AbortSignal.any([closing.signal, enough.signal])
    const wire = openWire({ who: name, clock, signal, timeoutMs: pingMs })
    try {
      await dialect.ask({ fetch: wire.fetch, signal })
    } catch (error) {
      check()
      const failure = failureOf(wire.cut() ?? error, { who: name, clock })
      // Some endpoints list no models: that they say so shows that they are there.
      if (!/ answered 40[45]\b/.test(failure.message))
        throw fault('UNAVAILABLE', { what, why: String(failure.values['why']) })
    } finally {
      enough.abort()
    }
  }
  return {
    async catalogue() {
      check()
      return catalogue
    },
    async *stream(request) {
      check()
      const model = modelOf(models, request.model) as ServedModel
      const signal = AbortSignal.any([request.signal, closing.signal])
      const release = await line.acquire(signal)
      try {
        yield* retry(() => once(request, model, signal), {
          clock,
          signal,
          failureOf: error => failureOf(error, { who: name, clock }),
          onFailure: (failure, tried) =>
            log(hasCode(failure, 'MODEL_REFUSED') ? 'error' : 'warn', 'models.call_failed', {
              provider: name,
              model: model.key,
              tried,
              why: failure.values['why'],
              retryAfterMs: failure.retryAfterMs,
            }),
        })
      } finally {
        release()
      }
    },
    async ping() {
      check()
      if (asked === undefined) {
        asked = ask()
        asked
          .then(() => clock.sleep(pingFreshMs, closing.signal))
          .catch(() => 'asked anew')
          .finally(() => {
            asked = undefined
          })
      }
      return asked
    },
    async close() {
      if (shut()) closing.abort(closedFault(what))
    },
  }
}
