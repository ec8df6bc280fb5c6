// Another member of the same organisation: an account of its own, moved there.
import type { StorageEngine } from '#ports/storage.ts'
import { Keys, Memberships, Users } from '../../plugins/identity/collections.ts'
import type { Account, TestServer } from '../conformance/plugin/server.ts'

export async function orgMemberOf(
  server: TestServer,
  { org_id: orgId }: Account,
): Promise<Account> {
  const made = await server.account(0)
  const storage = server.engine<StorageEngine>('storage')
  const userId = made.user_id
  await storage.update(Users, userId, { set: { orgId } })
  await storage.updateMany(Keys, { userId }, { set: { orgId } })
  await storage.insert(Memberships, {
    id: crypto.randomUUID(),
    orgId,
    userId,
    role: 'member',
    createdAt: Date.now(),
  })
  const { body } = await server.call('POST', '/auth/token', { body: { api_key: made.api_key } })
  return { ...made, org_id: orgId, token: (body as { access_token: string }).access_token }
}
