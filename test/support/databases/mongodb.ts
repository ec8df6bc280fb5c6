// A database of its own on the server that MONGODB_URL names, for one check, dropped afterwards.
import { randomUUID } from 'node:crypto'
import { connect } from '#adapters/_shared/mongodb/database.ts'

export const mongoUrl = process.env['MONGODB_URL']

export function freshDatabase(server = mongoUrl!) {
  const url = new URL(server)
  url.pathname = `/kit_${randomUUID().slice(0, 8)}`
  return {
    url,
    connect: () => connect(url),
    async clean() {
      const { db, close } = await connect(url)
      await db.dropDatabase()
      await close()
    },
  }
}
