// Caches what must hold of a user for a token to be accepted: not suspended, the same token
// version, still a member.
import type { KernelInfo, Broadcasting } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { createBoundedMap } from '../signin/bounded-map.ts'
import { Memberships, reasons, Users } from '../collections.ts'
import { stateMs } from '../config.ts'

export type State = {
  readonly suspended: boolean
  readonly version: number
  readonly roles: Readonly<Record<string, string>>
}
type Entry = { readonly until: number; readonly state: State | undefined }

const usersMax = 10_000
const membershipsMax = 1000

/**
 * Every request needs it. Ten seconds bound how long a lost hint of another process stays
 * unnoticed.
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
  const known = createBoundedMap<Entry>(usersMax)
  const asked = new Map<string, Promise<State | undefined>>()
  const people = store.system(reasons.people)

  const load = async (userId: string): Promise<State | undefined> => {
    const [user, memberships] = await Promise.all([
      people.get(Users, userId),
      people.find(Memberships, { where: { userId }, limit: membershipsMax }),
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
          // Caches only if nothing was forgotten meanwhile, because the value may be older than
          // that change.
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
    /** Forgets the user's cached status and checks open streams again, at other processes too. */
    forget(userId: string): void {
      drop(userId)
      peers.publish(topic, userId)
    },
  }
}
export type UserStatusCache = ReturnType<typeof createUserStatusCache>
