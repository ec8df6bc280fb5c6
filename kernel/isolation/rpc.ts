// Remote calls between two threads. Values are cloned. Signals, iterables and answers with a status
// cannot be cloned, so the other side reaches them by a number.
import { isReply, reply } from '#contracts/contract.ts'
import { fault, isFault, type FaultCode } from '#contracts/faults.ts'

/**
 * How many calls may wait for the other side. Further calls are refused, so that they do not fill
 * memory.
 */
const pendingMax = 10_000
/** The property that marks what stands for a value that was not cloned. */
const mark = '\u0000'

type SerializedError = {
  readonly thrown?: unknown
  readonly name?: string
  readonly message?: string
  readonly stack?: string | undefined
  readonly fault?: readonly [FaultCode, Record<string, string | number>, number | undefined]
}
export type Message =
  | readonly ['call', id: number, target: string, value: unknown]
  | readonly ['done', id: number, value: unknown]
  | readonly ['failed', id: number, told: SerializedError]
  | readonly ['aborted', signal: number, reason: unknown]
  | readonly ['forgotten', signals: readonly number[]]
export type Rpc = {
  /**
   * Rejects with the error of the other side: a fault as that fault, any other error with its name
   * and message.
   */
  call(target: string, value?: unknown): Promise<unknown>
  receive(message: Message): void
  /** Rejects every waiting call and every later one with this error. */
  end(why: Error): void
}
/**
 * The signals and undo steps of one call. They are released when the call and all its iterables
 * have ended.
 */
type Loan = { open: number; readonly signals: number[]; readonly undo: (() => void)[] }

const serializeError = (error: unknown): SerializedError => {
  if (!(error instanceof Error))
    return { thrown: typeof error === 'object' ? String(error) : error }
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    ...(isFault(error) ? { fault: [error.code, error.values, error.retryAfterMs] } : {}),
  }
}
function deserializeError({
  fault: known,
  thrown: value,
  name = 'Error',
  message = '',
  stack,
}: SerializedError): unknown {
  if (value !== undefined) return value
  if (known)
    return fault(known[0], known[1], known[2] === undefined ? {} : { retryAfterMs: known[2] })
  return Object.assign(new Error(message), { name, stack })
}
const isPlain = (value: object) =>
  [Object.prototype, null].includes(Object.getPrototypeOf(value) as null)
const mapped = (value: object, each: (field: unknown) => unknown) =>
  Object.fromEntries(Object.entries(value).map(([name, field]) => [name, each(field)]))

/** `answer` executes a call from the other side. */
export function createRpc(
  post: (message: Message) => void,
  answer: (target: string, value: unknown) => unknown,
): Rpc {
  const waiting = new Map<
    number,
    {
      readonly resolve: (value: unknown) => void
      readonly reject: (error: unknown) => void
      readonly loan: Loan
    }
  >()
  const lentStreams = new Map<number, AsyncIterator<unknown>>()
  const borrowedSignals = new Map<number, AbortController>()
  // When a reader is collected without having read, the other side releases its iterable.
  const unread = new FinalizationRegistry<number>(
    id => void call('#return', id).catch(() => undefined),
  )
  let count = 0
  let ended: Error | undefined

  const giveBack = (loan: Loan) => {
    if (--loan.open > 0) return
    for (const undo of loan.undo) undo()
    if (loan.signals.length > 0 && !ended) post(['forgotten', loan.signals])
  }

  function lendSignal(signal: AbortSignal, loan: Loan): object {
    const id = ++count
    if (signal.aborted) return { [mark]: 'signal', id, aborted: serializeError(signal.reason) }
    const onAbort = () => {
      if (!ended) post(['aborted', id, serializeError(signal.reason)])
    }
    signal.addEventListener('abort', onAbort, { once: true })
    loan.signals.push(id)
    loan.undo.push(() => signal.removeEventListener('abort', onAbort))
    return { [mark]: 'signal', id }
  }
  function pack(value: unknown, loan: Loan): unknown {
    if (typeof value === 'function' || typeof value === 'symbol')
      throw new TypeError(`A ${typeof value} cannot be handed to another thread.`)
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof AbortSignal) return lendSignal(value, loan)
    // Copies a view, because cloning a view clones its whole buffer.
    if (ArrayBuffer.isView(value))
      return value instanceof Uint8Array ? new Uint8Array(value) : value
    if (Symbol.asyncIterator in value) {
      lentStreams.set(++count, (value as AsyncIterable<unknown>)[Symbol.asyncIterator]())
      return { [mark]: 'stream', id: count }
    }
    if (isReply(value))
      return {
        [mark]: 'reply',
        status: value.status,
        headers: value.headers,
        value: pack(value.value, loan),
      }
    if (Array.isArray(value)) return value.map(one => pack(one, loan))
    if (!isPlain(value)) return value
    const fields = mapped(value, one => pack(one, loan))
    return mark in value ? { [mark]: 'own', fields: Object.entries(fields) } : fields
  }

  function borrowSignal(id: number, aborted: SerializedError | undefined): AbortSignal {
    const controller = new AbortController()
    if (aborted) controller.abort(deserializeError(aborted))
    else borrowedSignals.set(id, controller)
    return controller.signal
  }
  function borrowStream(id: number, loan: Loan): AsyncIterable<unknown> {
    loan.open++
    let open = true
    const over = () => {
      if (!open) return
      open = false
      giveBack(loan)
    }
    const iterator: AsyncIterator<unknown> = {
      next: async () => {
        if (!open) return { done: true, value: undefined }
        try {
          const step = (await call('#next', id)) as IteratorResult<unknown>
          if (step.done) over()
          return step
        } catch (error) {
          over()
          throw error
        }
      },
      return: async () => {
        if (open) {
          over()
          await call('#return', id).catch(() => undefined)
        }
        return { done: true, value: undefined }
      },
    }
    const stream: AsyncIterable<unknown> = {
      [Symbol.asyncIterator]: () => (unread.unregister(stream), iterator),
    }
    unread.register(stream, id, stream)
    return stream
  }
  function unpack(value: unknown, loan: Loan): unknown {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
    if (Array.isArray(value)) return value.map(one => unpack(one, loan))
    if (!isPlain(value)) return value
    const {
      [mark]: kind,
      id,
      aborted,
      status,
      headers,
      value: inner,
      fields,
    } = value as Record<string, never>
    switch (kind as string | undefined) {
      case 'signal':
        return borrowSignal(id!, aborted)
      case 'stream':
        return borrowStream(id!, loan)
      case 'reply':
        return reply(unpack(inner, loan), {
          headers: headers!,
          ...(status === undefined ? {} : { status }),
        })
      case 'own':
        return Object.fromEntries(
          (fields as unknown as [string, unknown][]).map(([name, field]) => [
            name,
            unpack(field, loan),
          ]),
        )
      default:
        return mapped(value, one => unpack(one, loan))
    }
  }

  async function carryOut(target: string, value: unknown): Promise<unknown> {
    if (target !== '#next' && target !== '#return') return answer(target, value)
    const iterator = lentStreams.get(value as number)
    if (target === '#return') {
      lentStreams.delete(value as number)
      return void (await iterator?.return?.())
    }
    const step = await iterator?.next().catch((error: unknown) => {
      lentStreams.delete(value as number)
      throw error
    })
    if (!step || step.done) lentStreams.delete(value as number)
    return step ? { done: step.done === true, value: step.value } : { done: true, value: undefined }
  }
  async function serve(id: number, target: string, packed: unknown): Promise<void> {
    const loan: Loan = { open: 1, signals: [], undo: [] }
    try {
      post(['done', id, pack(await carryOut(target, unpack(packed, loan)), loan)])
    } catch (error) {
      if (!ended) post(['failed', id, serializeError(error)])
    }
  }
  function call(target: string, value?: unknown): Promise<unknown> {
    if (ended) return Promise.reject(ended)
    if (waiting.size >= pendingMax)
      return Promise.reject(
        fault(
          'UNAVAILABLE',
          { what: 'The thread', why: 'too many calls wait for it' },
          { retryAfterMs: 1000 },
        ),
      )
    return new Promise((resolve, reject) => {
      const id = ++count
      const loan: Loan = { open: 1, signals: [], undo: [] }
      const message: Message = ['call', id, target, pack(value, loan)]
      post(message)
      waiting.set(id, { resolve, reject, loan })
    })
  }

  return {
    call,
    receive(message) {
      switch (message[0]) {
        case 'call':
          return void serve(message[1], message[2], message[3])
        case 'aborted':
          return borrowedSignals
            .get(message[1])
            ?.abort(deserializeError(message[2] as SerializedError))
        case 'forgotten':
          return message[1].forEach(signalId => borrowedSignals.delete(signalId))
      }
      const [kind, id, value] = message
      const waiter = waiting.get(id)
      waiting.delete(id)
      if (!waiter) return
      if (kind === 'done') waiter.resolve(unpack(value, waiter.loan))
      else waiter.reject(deserializeError(value))
      giveBack(waiter.loan)
    },
    end(why) {
      if (ended) return
      ended = why
      for (const { reject, loan } of waiting.values()) {
        reject(why)
        for (const undo of loan.undo) undo()
      }
      waiting.clear()
      for (const controller of borrowedSignals.values()) controller.abort(why)
      for (const iterator of lentStreams.values()) void iterator.return?.().catch(() => undefined)
      lentStreams.clear()
    },
  }
}
