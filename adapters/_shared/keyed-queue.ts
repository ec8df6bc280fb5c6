// A queue for each key: calls on one document take effect in order, although connections run in
// parallel. A call on many documents waits for all earlier calls.

export type KeyedQueue = {
  one<T>(id: string, act: () => Promise<T>): Promise<T>
  /** Later calls wait for this one, too. */
  many<T>(act: () => Promise<T>): Promise<T>
  /** Waits for earlier calls; later calls do not wait for it. */
  look<T>(act: () => Promise<T>): Promise<T>
  settled(): Promise<void>
}

export function createKeyedQueue(): KeyedQueue {
  const tails = new Map<string, Promise<unknown>>()
  let barrier: Promise<unknown> = Promise.resolve()
  const quiet = (promise: Promise<unknown>) => promise.catch(() => undefined)
  const everything = () => Promise.all([barrier, ...tails.values()])

  return {
    one(id, act) {
      const turn = (tails.get(id) ?? barrier).then(act)
      const tail: Promise<unknown> = quiet(turn).finally(() => {
        if (tails.get(id) === tail) tails.delete(id)
      })
      tails.set(id, tail)
      return turn
    },
    many(act) {
      const turn = everything().then(act)
      tails.clear()
      barrier = quiet(turn)
      return turn
    },
    look: act => everything().then(act),
    settled: async () => void (await everything()),
  }
}
