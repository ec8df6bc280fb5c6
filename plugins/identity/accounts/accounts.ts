// What an administrator, or another plugin, may do to accounts.
import { passwordCharsMax, passwordCharsMin } from '#contracts/identity.ts'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Change, ScopedStorage } from '#ports/storage.ts'
import type { AccountsApi } from '../api.ts'
import { codeFields, reasons, Users, type User } from '../collections.ts'
import type { KeysService } from '../keys/keys.ts'
import type { Passwords } from '../passwords/passwords.ts'
import type { UserStatusCache } from './user-status-cache.ts'
import { founderRole, normalEmail, onlyOnce, type UsersService } from './users.ts'

type Deps = {
  store: ScopedStorage
  clock: Clock
  passwords: Passwords
  keys: KeysService
  states: UserStatusCache
  users: UsersService
}

function checkPassword(password: string): void {
  if (password.length < passwordCharsMin || password.length > passwordCharsMax)
    throw fault('INVALID_FIELD', {
      field: 'password',
      why: `must have ${passwordCharsMin} to ${passwordCharsMax} characters`,
    })
}

export function createAccounts({
  store,
  clock,
  passwords,
  keys,
  states,
  users,
}: Deps): AccountsApi {
  const people = store.system(reasons.people)

  const change = async (userId: string, asked: Change): Promise<User | undefined> => {
    const user = await people.update(Users, userId, asked)
    states.forget(userId)
    return user
  }
  return {
    async create({ email: given, credits, password }) {
      const email = normalEmail(given)
      if (password !== undefined) checkPassword(password)
      const passwordHash =
        password === undefined ? undefined : await passwords.hash(password, 'operator')
      const account = {
        verified: true,
        credits,
        ...(passwordHash === undefined ? {} : { passwordHash }),
      }
      const user: User = {
        id: clock.id(),
        email,
        suspended: false,
        version: 1,
        orgId: clock.id(),
        settled: false,
        createdAt: clock.now(),
        ...account,
      }
      const made = await onlyOnce(people.insert(Users, user))
      // An earlier registration did not prove the address. The operator vouches for the new one, so
      // the earlier password is dropped.
      const squatter = made ? undefined : await users.byEmail(email)
      const verified = made
        ? user
        : squatter &&
          (await people.update(
            Users,
            squatter.id,
            {
              set: account,
              unset: [...codeFields, ...(passwordHash === undefined ? ['passwordHash'] : [])],
            },
            { if: { verified: false } },
          ))
      if (verified === undefined)
        throw fault('CONFLICT', { why: 'there is an account with this e-mail address' })
      const { id, orgId } = await users.settle(verified)
      const key = await keys.create(
        { userId: id, orgId, role: founderRole },
        'made with the account',
      )
      return { user_id: id, org_id: orgId, api_key: key.secret }
    },
    suspend: async userId => (await change(userId, { set: { suspended: true } })) !== undefined,
    restore: async userId => (await change(userId, { set: { suspended: false } })) !== undefined,
    async endSessions(userId) {
      const user = await change(userId, { inc: { version: 1 } })
      if (user !== undefined) await keys.endOlder(userId, user.version)
      return user !== undefined
    },
  }
}
