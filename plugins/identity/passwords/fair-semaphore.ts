// A fair semaphore. It bounds the tasks at a time and takes turns among keys, so that many tasks of
// one key do not block another's.

type Bounds = {
  readonly atOnce: number
  readonly atOncePerKey: number
  readonly waitingMax: number
  /**
   * The error for a task that finds no room to wait, or that made room for a key with fewer tasks.
   */
  readonly refuse: () => Error
}
type Waiting = { go(): void; refuse(): void }

export function createFairSemaphore({ atOnce, atOncePerKey, waitingMax, refuse }: Bounds) {
  const running = new Map<string, number>()
  /**
   * Keys in the order of their next turn, each with its own tasks in the order in which they came.
   */
  const queues = new Map<string, Waiting[]>()
  let busy = 0
  let waiting = 0
  const runningOf = (key: string): number => running.get(key) ?? 0
  const fits = (key: string): boolean => busy < atOnce && runningOf(key) < atOncePerKey

  const acquire = (key: string): void => {
    busy++
    running.set(key, runningOf(key) + 1)
  }
  const startNext = (): void => {
    for (const [key, queue] of queues) {
      if (!fits(key)) continue
      const next = queue.shift()!
      waiting--
      // The key goes to the end of the queue, behind keys that waited for this turn.
      queues.delete(key)
      if (queue.length > 0) queues.set(key, queue)
      acquire(key)
      next.go()
      return
    }
  }
  const release = (key: string): void => {
    busy--
    if (runningOf(key) === 1) running.delete(key)
    else running.set(key, runningOf(key) - 1)
    startNext()
  }
  /** Makes room by refusing the newest task of the key with the most, unless that is this key. */
  const makeRoom = (key: string): void => {
    let longest = key
    let length = (queues.get(key)?.length ?? 0) + 1
    for (const [other, { length: theirs }] of queues)
      if (theirs > length) [longest, length] = [other, theirs]
    if (longest === key) throw refuse()
    const queue = queues.get(longest)!
    queue.pop()!.refuse()
    waiting--
  }
  const wait = (key: string): Promise<void> => {
    if (waiting >= waitingMax) makeRoom(key)
    return new Promise((resolve, reject) => {
      const queue = queues.get(key) ?? []
      queue.push({ go: resolve, refuse: () => reject(refuse()) })
      queues.set(key, queue)
      waiting++
    })
  }
  return async <T>(key: string, task: () => Promise<T>): Promise<T> => {
    if (fits(key)) acquire(key)
    else await wait(key)
    try {
      return await task()
    } finally {
      release(key)
    }
  }
}
