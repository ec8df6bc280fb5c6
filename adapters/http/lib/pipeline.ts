// Answers pipelined requests (RFC 9112, section 9.3.2) one after the other. A connection has one
// call inside the server, however many requests it sends at once.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse }
type Waiting = Exchange & { readonly serve: () => void }
type State = {
  current: Exchange | undefined
  readonly waiting: Waiting[]
  /** Called when the current exchange has ended, because the rest cannot be read. */
  last: (() => void) | undefined
}

/** Requests that wait on one connection. Beyond that, the connection is not read. */
const waitingMax = 16
/**
 * Requests that one read of the socket may bring all the same. No client that waits for its answers
 * sends as many.
 */
const burstMax = 512
/**
 * Requests that wait on all connections together, about a kilobyte each. Beyond that, a connection
 * with more than `waitingMax` is ended.
 */
const crowdMax = 10_000

/** `onFlood` handles a connection that brought too many requests. */
export function createPipeline(onFlood: (socket: Socket) => void) {
  const states = new WeakMap<Socket, State>()
  let crowd = 0
  const stateOf = (socket: Socket): State => {
    let state = states.get(socket)
    if (!state) states.set(socket, (state = { current: undefined, waiting: [], last: undefined }))
    return state
  }
  const next = (socket: Socket, state: State): void => {
    state.current = undefined
    if (socket.destroyed || socket.writableEnded) {
      crowd -= state.waiting.splice(0).length
      return
    }
    const { request, response, serve } = state.waiting.shift() ?? {}
    if (serve) {
      crowd--
      begin(socket, state, { request: request!, response: response! }, serve)
    } else state.last?.()
    hold(socket, state)
  }
  // Node resumes a socket after each complete message. So the pause is repeated when all messages
  // of one read were seen.
  const hold = (socket: Socket, { waiting }: State): void => {
    if (waiting.length > waitingMax) socket.pause()
    else if (socket.isPaused()) socket.resume()
  }
  const begin = (socket: Socket, state: State, exchange: Exchange, serve: () => void): void => {
    state.current = exchange
    // Starts the next request in a later turn. Thousands in one turn would keep others from being
    // served.
    exchange.response.once('close', () => setImmediate(next, socket, state))
    serve()
  }
  return {
    /**
     * Calls `serve` when everything before it on its connection has been answered; never, if the
     * connection ends before.
     */
    enter(exchange: Exchange, serve: () => void): void {
      const { socket } = exchange.request
      const state = stateOf(socket)
      if (!state.current) return begin(socket, state, exchange, serve)
      // Requests of the same read, behind the one that was too many.
      if (socket.destroyed) return
      state.waiting.push({ ...exchange, serve })
      crowd++
      const isFlood = state.waiting.length > burstMax || crowd > crowdMax
      if (isFlood && state.waiting.length > waitingMax) onFlood(socket)
      else if (state.waiting.length === waitingMax + 1) process.nextTick(hold, socket, state)
    },
    current: (socket: Socket): Exchange | undefined => states.get(socket)?.current,
    /** Calls `say` when everything that came before has been answered. */
    atEnd(socket: Socket, say: () => void): void {
      const state = stateOf(socket)
      if (state.current) state.last = say
      else say()
    },
  }
}
export type Pipeline = ReturnType<typeof createPipeline>
