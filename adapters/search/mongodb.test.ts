// The kit against the server that MONGODB_URL names: MongoDB, or one that speaks its protocol. Each
// check has a database of its own, dropped afterwards.
import { test } from 'uvu'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { searchKit } from '../../test/conformance/search.ts'
import { systemClock } from '../clock/system.ts'
import { mongoSearch } from './mongodb.ts'

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  searchKit(test, 'mongodb', {
    survives: true,
    place: async () => {
      const { connect, clean } = freshDatabase()
      const clock = systemClock()
      return { clean, open: async () => mongoSearch({ connection: await connect(), clock }) }
    },
  })
}
test.run()
