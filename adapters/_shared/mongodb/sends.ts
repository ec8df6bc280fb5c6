// Large writes that end even when their connection does. The driver waits for a socket to take what
// it was given,
// and does not hear that the socket was closed meanwhile: such a call would never end, nor free its
// connection.
import { MongoNetworkTimeoutError, type MongoClient } from 'mongodb'

/**
 * An AbortSignal that is given to the driver among the options of the call; its types do not list
 * it everywhere.
 */
export type Bound = object
export type Send = <T>(call: (bound: Bound) => Promise<T>) => Promise<T>

/**
 * After a connection has failed, the calls under way on others have so many milliseconds to end.
 */
const graceMs = 2000

/** `limitMs`: longer than the driver itself waits for an answer. */
export function createSend(client: MongoClient, limitMs: number): Send {
  const pending = new Set<AbortController>()
  const abort = (controllers: Iterable<AbortController>) => {
    for (const one of controllers)
      one.abort(new MongoNetworkTimeoutError('The connection did not take what was sent.'))
  }
  client.on('connectionPoolCleared', () => {
    const doomed = [...pending]
    if (doomed.length > 0) setTimeout(() => abort(doomed), graceMs).unref()
  })
  return async call => {
    const controller = new AbortController()
    const late = setTimeout(() => abort([controller]), limitMs)
    pending.add(controller)
    try {
      return await call({ signal: controller.signal })
    } finally {
      clearTimeout(late)
      pending.delete(controller)
    }
  }
}
