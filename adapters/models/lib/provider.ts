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

/** Calls that may wait for a permit. Further calls fail at once. */
const waitingMax = 1000
const waitingRetryMs = 1000
/**
 * The limit of a health check. The kernel's own limit is two seconds; a shorter one lets the answer
 * name the provider.
 */
const pingMs = 1500
/**
 * How long a good answer to a health check is valid. Health checks are frequent, and count against
 * the provider's limits.
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
  /**
   * Sends the request. Returns the library's events, and the function that writes each into the
   * answer.
   */
  send(
    call: Call,
  ): Promise<{ readonly events: AsyncIterable<unknown>; readonly read: (event: unknown) => void }>
  /** Makes the smallest call that shows that the provider is there and accepts the key. */
  ask(how: Pick<Call, 'fetch' | 'signal'>): Promise<unknown>
}
export type ProviderSettings = {
  /** The provider's name in the catalogue, in error texts and in the log. */
  readonly name: string
  readonly baseUrl: string
  readonly apiKey: string | undefined
  /** Calls that run at a time. */
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
        // An error after the finish is ignored: at most the usage is missing.
        if (outer.aborted || !answer.hasFinished()) throw wire.cut() ?? error
      }
      // The libraries end an aborted stream like a complete one.
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
      // Some endpoints list no models. Such an answer still shows that they are there.
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
