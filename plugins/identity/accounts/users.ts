// Who a user is, and the organisation that a new account founds.
import type { Caller } from '#contracts/contract.ts'
import type { Profile } from '#contracts/identity.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Memberships, Organisations, reasons, Users, type User } from '../collections.ts'
import type { UserStatusCache } from './user-status-cache.ts'

const emailPattern =
  /^[^\s@"(),:;<>[\\\]\p{C}]{1,64}@(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))+$/u
const emailMax = 254
export const founderRole = 'owner'

/** INVALID_FIELD unless it is one plain address; the same address is always the same text. */
export function normalEmail(text: string): string {
  const email = text.trim().toLowerCase().normalize('NFC')
  if (email.length > emailMax || !emailPattern.test(email))
    throw fault('INVALID_FIELD', { field: 'email', why: 'is not a valid e-mail address' })
  return email
}

/** True when it was new. */
export const onlyOnce = (insert: Promise<void>): Promise<boolean> =>
  insert.then(
    () => true,
    (error: unknown) => {
      if (hasCode(error, 'DUPLICATE')) return false
      throw error
    },
  )

export function createUsers({
  store,
  clock,
  billing,
  states,
}: {
  store: ScopedStorage
  clock: Clock
  billing: Ledger
  states: UserStatusCache
}) {
  const people = store.system(reasons.people)
  const home = store.system(reasons.home)
  const profile = (
    { email, name, createdAt, passwordHash }: User,
    { userId, orgId, role }: Caller,
  ): Profile => ({
    user_id: userId,
    email,
    name: name ?? null,
    org_id: orgId,
    role,
    created_at: new Date(createdAt).toISOString(),
    has_password: passwordHash !== undefined,
  })
  const known = (user: User | undefined, caller: Caller): Profile => {
    if (user === undefined) throw fault('UNAUTHENTICATED')
    return profile(user, caller)
  }
  return {
    /**
     * Creates the organisation, the membership and the first credits. Each step happens once, so
     * the next sign-in completes what a crash interrupted.
     */
    async settle(user: User): Promise<User> {
      if (user.settled) return user
      const createdAt = clock.now()
      await onlyOnce(home.insert(Organisations, { id: user.orgId, name: user.email, createdAt }))
      await onlyOnce(
        home.insert(Memberships, {
          id: clock.id(),
          orgId: user.orgId,
          userId: user.id,
          role: founderRole,
          createdAt,
        }),
      )
      if (user.credits > 0)
        await billing.credit(user.orgId, {
          key: `signup:${user.orgId}`,
          amount: user.credits,
          reason: 'first credits',
        })
      states.forget(user.id)
      return (await people.update(Users, user.id, { set: { settled: true } })) ?? user
    },
    byEmail: async (email: string): Promise<User | undefined> =>
      (await people.find(Users, { where: { email }, limit: 1 })).items[0],
    read: async (caller: Caller): Promise<Profile> =>
      known(await people.get(Users, caller.userId), caller),
    rename: async (caller: Caller, name: string | null): Promise<Profile> =>
      known(
        await people.update(
          Users,
          caller.userId,
          name === null ? { unset: ['name'] } : { set: { name } },
        ),
        caller,
      ),
  }
}
export type UsersService = ReturnType<typeof createUsers>
