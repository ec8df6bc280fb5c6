// Ends large writes when their connection ends. The driver waits until a socket takes the data, and
// does not notice that the socket was closed. Such a call would never end, nor free its connection.
import { MongoNetworkTimeoutError, type MongoClient } from 'mongodb'

/**
 * An AbortSignal that is given to the driver among the options of the call; its types do not list
 * it everywhere.
 */
export type Bound = object
export type Send = <T>(call: (bound: Bound) => Promise<T>) => Promise<T>

/** Milliseconds in which calls on other connections must end after one connection has failed. */
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
