// Jobs in Agenda's collection and fields. Further fields hold what Agenda does not know: the state,
// the tries, and the key that makes a job unique.
import { createHash } from 'node:crypto'
import {
  MongoServerError,
  ObjectId,
  type Collection,
  type Db,
  type OptionalUnlessRequiredId,
  type WithId,
} from 'mongodb'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Depth, JobState } from '#ports/queue.ts'
import type { Json } from '#ports/token.ts'
import { keptMs, type Lease } from '../lib/job-lease.ts'
import { orFault, type Connection } from '../../_shared/mongodb/database.ts'

/** Agenda's own name for it, by which its tools find it. */
export const collectionName = 'agendaJobs'
/** No plugin's job may have this name. */
export const scheduleName = '#schedule'

/**
 * `data`: JSON as text, for documents have no place for every name that JSON allows.
 * `lastModifiedBy`: the mark of the claim that holds it.
 * `nextRunAt`: when it may be taken; it stays while the job runs, for a job with neither time nor
 * lock would be taken by nobody.
 */
type Fields = {
  name: string
  data: string
  type: 'normal'
  priority: number
  nextRunAt: Date | null
  lockedAt: Date | null
  lastModifiedBy: string | null
  state: JobState
  attempt: number
  active?: string
  expiresAt?: Date
  lastRunAt?: Date
  lastFinishedAt?: Date
  failReason?: string
  repeatInterval?: string
  repeatTimezone?: string
}
export type Row = WithId<Fields>
export type Rows = ReturnType<typeof rowsIn>
export type NewRow = {
  readonly id?: ObjectId
  readonly name: string
  readonly data: Json
  readonly due: number
  readonly active?: string
}

const duplicate = 11_000
const isDuplicate = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === duplicate
export const idOf = (text: string): ObjectId | undefined =>
  /^[0-9a-f]{24}$/.test(text) ? new ObjectId(text) : undefined
/**
 * The same for the same time of a schedule: of several processes that fire it, one puts the job in.
 */
export const firedId = (key: string, due: number): ObjectId =>
  new ObjectId(createHash('sha256').update(`${key}@${due}`).digest().subarray(0, 12))
const activeSchedule = (key: string) => `${scheduleName} ${key}`

export async function prepareRows(db: Db): Promise<void> {
  const kept = db.collection(collectionName)
  await orFault(
    kept.createIndexes([
      {
        name: 'platform_active',
        key: { active: 1 },
        unique: true,
        partialFilterExpression: { active: { $exists: true } },
      },
      // Agenda looks for locks that ran out; its own index would lead through every job of the name
      // that has ended.
      { name: 'platform_locked', key: { name: 1, lockedAt: 1 } },
      // The server's own clock takes ended jobs out; clocks differ by less than days.
      { name: 'platform_expiry', key: { expiresAt: 1 }, expireAfterSeconds: 0 },
    ]),
  )
}

/** `watchable`: the collection, for whoever wants to hear of insertions. */
export function rowsIn({ db }: Pick<Connection, 'db'>, clock: Clock) {
  const kept: Collection<Fields> = db.collection(collectionName)
  const at = (ms: number) => new Date(ms)
  const now = () => at(clock.now())
  const over = (state: JobState, error?: string) => ({
    $set: {
      state,
      nextRunAt: null,
      lockedAt: null,
      lastModifiedBy: null,
      lastFinishedAt: now(),
      expiresAt: at(clock.now() + keptMs),
      ...(error === undefined ? {} : { failReason: error }),
    },
    $unset: { active: '' as const },
  })
  const waiting = { state: 'waiting', lockedAt: null, lastModifiedBy: null } as const

  return {
    watchable: kept,
    /** The id of the one that stands: this one, or the one that has its key or id already. */
    async add({ id = new ObjectId(), name, data, due, active }: NewRow): Promise<string> {
      for (;;) {
        try {
          const row: OptionalUnlessRequiredId<Fields> = {
            _id: id,
            name,
            data: JSON.stringify(data),
            type: 'normal',
            priority: 0,
            nextRunAt: at(due),
            ...waiting,
            attempt: 0,
            ...(active === undefined ? {} : { active }),
          }
          await kept.insertOne(row)
          return id.toHexString()
        } catch (error) {
          if (!isDuplicate(error)) return await orFault(Promise.reject(error))
          if (active === undefined) return id.toHexString()
          // The job with the key may end between the two calls. Then the new one can be added.
          const first = await orFault(kept.findOne({ active }, { projection: { _id: 1 } }))
          if (first) return first._id.toHexString()
        }
      }
    },
    /** The job as it begins another try; null when whoever claimed it has lost it. */
    begin: (id: string, mark: string): Promise<Row | null> =>
      orFault(
        kept.findOneAndUpdate(
          { _id: new ObjectId(id), lastModifiedBy: mark, state: { $in: ['waiting', 'running'] } },
          { $set: { state: 'running', lockedAt: now(), lastRunAt: now() }, $inc: { attempt: 1 } },
          { returnDocument: 'after' },
        ),
      ),
    leaseOf({ _id, attempt }: Row, mark: string): Lease {
      const write = async (change: Parameters<typeof kept.updateOne>[1]) =>
        (await orFault(kept.updateOne({ _id, lastModifiedBy: mark }, change))).matchedCount === 1
      return {
        heartbeat: () => write({ $set: { lockedAt: now() } }),
        finish: async (state, error) => void (await write(over(state, error))),
        putBack: async (error, afterMs) =>
          void (await write({
            $set: {
              ...waiting,
              nextRunAt: at(clock.now() + (afterMs ?? 0)),
              attempt: afterMs === undefined ? attempt - 1 : attempt,
              failReason: error,
            },
          })),
      }
    },
    cancel: async (id: ObjectId): Promise<boolean> =>
      (await orFault(kept.updateOne({ _id: id, state: 'waiting' }, over('cancelled'))))
        .matchedCount === 1,
    state: async (id: ObjectId): Promise<JobState | undefined> =>
      (await orFault(kept.findOne({ _id: id }, { projection: { state: 1 } })))?.state,

    /**
     * What has ended has neither a time nor a lock: both are counted along an index, Agenda's own
     * and that of the locks.
     */
    async depth(name: string): Promise<Depth> {
      const [due, running] = await orFault(
        Promise.all([
          kept.countDocuments({ name, nextRunAt: { $lte: now() }, lockedAt: null }),
          kept.countDocuments({ name, lockedAt: { $gt: at(0) } }),
        ]),
      )
      return { waiting: due, running }
    },

    /** The same times again keep what is due: a start of the server must forget no missed time. */
    async schedule(
      key: string,
      { data, cron, timezone, due }: { data: Json; cron: string; timezone: string; due: number },
    ): Promise<number> {
      const active = activeSchedule(key)
      const text = JSON.stringify(data)
      const same = await orFault(
        kept.findOneAndUpdate(
          { active, repeatInterval: cron, repeatTimezone: timezone },
          { $set: { data: text } },
          { returnDocument: 'after' },
        ),
      )
      if (same?.nextRunAt) return same.nextRunAt.getTime()
      const set = {
        name: scheduleName,
        data: text,
        type: 'normal',
        priority: 0,
        ...waiting,
        attempt: 0,
        nextRunAt: at(due),
        repeatInterval: cron,
        repeatTimezone: timezone,
      } as const
      const replace = () => kept.updateOne({ active }, { $set: set }, { upsert: true })
      await orFault(
        replace().catch((error: unknown) =>
          isDuplicate(error) ? replace() : Promise.reject(error),
        ),
      )
      return due
    },
    /** After it has fired, to the time after. Nothing where it was replaced meanwhile. */
    moveOn: async ({ _id }: Row, mark: string, due: number) =>
      void (await orFault(
        kept.updateOne(
          { _id, lastModifiedBy: mark },
          { $set: { ...waiting, attempt: 0, nextRunAt: at(due) } },
        ),
      )),
    unschedule: async (key: string): Promise<boolean> =>
      (await orFault(kept.deleteOne({ active: activeSchedule(key) }))).deletedCount === 1,
  }
}

export function checkName(name: string): void {
  if (name.startsWith('#'))
    throw fault('INVALID_FIELD', {
      field: 'name',
      why: "a name that begins with # is the queue's own",
    })
}
