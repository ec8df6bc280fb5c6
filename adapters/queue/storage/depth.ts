// How many jobs wait, and how many are under way.
import type { Depth } from '#ports/queue.ts'
import { jobs, type World } from './rows.ts'

/** Of the jobs under way, so many are read at a time to be counted. */
const countedAtOnce = 200

/**
 * Only a job that runs has an owner, so that those are few; whatever has a time to wait for is
 * counted along the index of times.
 */
export async function depthOf(
  { storage, clock }: World,
  names: readonly string[],
): Promise<Readonly<Record<string, Depth>>> {
  const now = clock.now()
  const running = new Map<string, { all: number; due: number }>()
  for (let after: string | undefined, isLast = false; !isLast; ) {
    const { items, next } = await storage.find(jobs, {
      where: { owner: { gt: '' } },
      orderBy: ['owner', 'asc'],
      limit: countedAtOnce,
      ...(after === undefined ? {} : { after }),
    })
    for (const { name, due } of items) {
      const { all, due: late } = running.get(name) ?? { all: 0, due: 0 }
      running.set(name, { all: all + 1, due: late + Number(due! <= now) })
    }
    isLast = (after = next) === undefined
  }
  return Object.fromEntries(
    await Promise.all(
      names.map(async name => {
        // One whose lease has run out is under way until somebody takes it over.
        const { all, due } = running.get(name) ?? { all: 0, due: 0 }
        return [
          name,
          {
            waiting: Math.max(0, (await storage.count(jobs, { name, due: { lte: now } })) - due),
            running: all,
          },
        ] as const
      }),
    ),
  )
}
