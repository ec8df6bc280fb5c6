// What must still be true of a user while a token of theirs is accepted: not suspended, the same
// version, still a member.
import type { KernelInfo, Broadcasting } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { createBoundedMap } from './bounded-map.ts'
import { Memberships, reasons, Users } from './collections.ts'
import { stateMs } from './config.ts'

export type State = {
  readonly suspended: boolean
  readonly version: number
  readonly roles: Readonly<Record<string, string>>
}
type Entry = { readonly until: number; readonly state: State | undefined }

const USERS_MAX = 10_000
const MEMBERSHIPS_MAX = 1000

/**
 * Asked for every request: kept for ten seconds, so that a change of another process whose hint was
 * lost is seen within them.
 */
type Deps = {
  store: ScopedStorage
  clock: Clock
  host: KernelInfo
  peers: Broadcasting
  defer: (undo: () => unknown) => void
}

/** Between processes: this user's rights have changed. */
const topic = 'user-changed'

export function createUserStatusCache({ store, clock, host, peers, defer }: Deps) {
  const known = createBoundedMap<Entry>(USERS_MAX)
  const asked = new Map<string, Promise<State | undefined>>()
  const people = store.system(reasons.people)

  const load = async (userId: string): Promise<State | undefined> => {
    const [user, memberships] = await Promise.all([
      people.get(Users, userId),
      people.find(Memberships, { where: { userId }, limit: MEMBERSHIPS_MAX }),
    ])
    if (user === undefined || !user.verified) return undefined
    return {
      suspended: user.suspended,
      version: user.version,
      roles: Object.fromEntries(memberships.items.map(({ orgId, role }) => [orgId, role])),
    }
  }
  const drop = (userId: string): void => {
    known.delete(userId)
    asked.delete(userId)
    host.recheck(userId)
  }
  defer(
    peers.subscribe(topic, userId => {
      if (typeof userId === 'string') drop(userId)
    }),
  )
  return {
    /** At once where it is known, else a promise: most requests wait for nothing. */
    of(userId: string): State | undefined | Promise<State | undefined> {
      const entry = known.get(userId)
      if (entry !== undefined && entry.until > clock.monotonic()) return entry.state
      const underWay = asked.get(userId)
      if (underWay !== undefined) return underWay
      const until = clock.monotonic() + stateMs
      const loading: Promise<State | undefined> = load(userId)
        .then(state => {
          // Only where nothing was forgotten meanwhile: what was read may be older than that
          // change.
          if (asked.get(userId) === loading) known.set(userId, { until, state })
          return state
        })
        .finally(() => {
          if (asked.get(userId) === loading) asked.delete(userId)
        })
      asked.set(userId, loading)
      return loading
    },
    /** From storage, for what must hold at once. */
    fresh: load,
    /**
     * The user was changed: nobody goes by what was known, and open streams are checked again, at
     * other processes too.
     */
    forget(userId: string): void {
      drop(userId)
      peers.publish(topic, userId)
    },
  }
}
export type UserStatusCache = ReturnType<typeof createUserStatusCache>
