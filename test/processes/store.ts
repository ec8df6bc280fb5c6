// A MongoDB for the tests with several processes: one of this file's own, which may be killed, or
// the user's.
import { freshDatabase, mongoUrl } from '../support/databases/mongodb.ts'
import { startMongo } from '../servers/mongodb.ts'
import type { Server } from '../servers/server.ts'

/** `server`: absent where it is the user's, and not to be killed. `why`: there is none. */
export type Store = {
  readonly database: ReturnType<typeof freshDatabase>
  readonly server?: Server
  close(): Promise<void>
}

export async function openStore(): Promise<Store | { readonly why: string }> {
  if (mongoUrl === undefined) return { why: 'MONGODB_URL is not set' }
  if (!process.env['TEST_SERVERS']?.split(' ').includes('MONGODB_URL')) {
    const database = freshDatabase()
    return { database, close: database.clean }
  }
  // A fresh one, too, for each change stream that was ever left behind makes this server's writes
  // slower.
  const server = await startMongo()
  return 'why' in server
    ? server
    : { database: freshDatabase(server.url), server, close: server.stop }
}
