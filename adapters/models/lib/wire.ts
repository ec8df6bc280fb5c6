// One HTTP exchange with a model provider, behind the `fetch` that its library gets. Silence and
// size are bounded, and redirects are not followed.
import { fault, type Fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { orAborted } from '../../_shared/abortable.ts'

/** The most bytes of one answer, and of one refusal. */
const answerBytesMax = 64 * 1024 * 1024
const refusalBytesMax = 1024 * 1024
/**
 * The only headers that are sent. Libraries add facts about this machine, and headers from
 * environment variables.
 */
const headersKept = [
  'accept',
  'content-type',
  'authorization',
  'x-api-key',
  'anthropic-version',
  'user-agent',
]

export type Wire = {
  /** The `fetch` for the library. */
  readonly fetch: typeof globalThis.fetch
  /**
   * Resolves when the library asks for bytes that have not come yet. All bytes before were handed
   * out.
   */
  hungry(): Promise<void>
  /** Why this module cut the exchange off, if it did. */
  cut(): Fault | undefined
}
type Exchange = {
  readonly who: string
  readonly clock: Clock
  /** Ends the exchange. */
  readonly signal: AbortSignal
  /** How long the provider may be silent: before its first byte, and between two. */
  readonly timeoutMs: number
}

export function openWire({ who, clock, signal, timeoutMs }: Exchange): Wire {
  const limit = new AbortController()
  const ended = AbortSignal.any([signal, limit.signal])
  let asking = Promise.withResolvers<void>()

  const cutOff = (why: string): void => limit.abort(fault('MODEL_FAILED', { why: `${who} ${why}` }))
  const within = async <T>(act: Promise<T>): Promise<T> => {
    const over = new AbortController()
    const late = clock.sleep(timeoutMs, over.signal).then(
      () => cutOff(`was silent for ${timeoutMs} ms`),
      () => 'it came in time',
    )
    try {
      return await orAborted(act, ended)
    } finally {
      over.abort()
      await late
    }
  }
  const bounded = (body: ReadableStream<Uint8Array>, ok: boolean): ReadableStream<Uint8Array> => {
    const reader = body.getReader()
    const bytesMax = ok ? answerBytesMax : refusalBytesMax
    let bytes = 0
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          asking.resolve()
          const { done, value } = await within(reader.read())
          asking = Promise.withResolvers()
          if (done) return controller.close()
          bytes += value.length
          if (bytes <= bytesMax) return controller.enqueue(value)
          if (ok) cutOff(`sent more than ${bytesMax} bytes`)
          ended.throwIfAborted()
          // The status of a refusal says enough.
          controller.close()
          await reader.cancel()
        },
        cancel: reason => reader.cancel(reason),
        // Nothing is read ahead, so a pull means that the library has used all bytes before.
      },
      { highWaterMark: 0 },
    )
  }
  return {
    async fetch(input, init) {
      const given = new Headers(init?.headers)
      const headers = headersKept.flatMap((name): [string, string][] =>
        given.has(name) ? [[name, given.get(name)!]] : [],
      )
      // A redirect would send the prompt to a foreign address, and the key in its own header, too.
      const response = await within(
        globalThis.fetch(input, {
          ...init,
          headers,
          redirect: 'manual',
          signal: AbortSignal.any([ended, ...(init?.signal ? [init.signal] : [])]),
        }),
      )
      if (response.body === null) return response
      return new Response(bounded(response.body, response.ok), {
        status: response.status,
        statusText: response.statusText,
        headers: response.headers,
      })
    },
    hungry: () => asking.promise,
    cut: () => (limit.signal.aborted ? (limit.signal.reason as Fault) : undefined),
  }
}
