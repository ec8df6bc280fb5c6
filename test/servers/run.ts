// Runs a command beside the servers that the tests can use, each started here unless its URL is given; what cannot be started is told with the reason, and its tests are skipped.
//   npm run test:servers                 the tests that need a server
//   npm run test:servers -- npm test     all tests
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startMongo } from './mongodb.ts'

const say = (text: string) => process.stdout.write(`${text}\n`)
const [command, ...args] = process.argv.length > 2 ? process.argv.slice(2) : [process.execPath, 'test/run.ts', 'mongodb']

const mongo = process.env['MONGODB_URL'] ? { url: process.env['MONGODB_URL'], stop: async () => undefined } : await startMongo()
if ('why' in mongo) say(`MongoDB-compatible server: skipped, ${mongo.why}`)
else say(process.env['MONGODB_URL'] ? 'MongoDB: the server that MONGODB_URL names' : 'MongoDB-compatible server (SecantusDB, not MongoDB): started')
try {
  const child = spawn(command!, args, { stdio: 'inherit', env: { ...process.env, ...('url' in mongo ? { MONGODB_URL: mongo.url } : {}) } })
  process.exitCode = Number((await once(child, 'exit'))[0] ?? 1)
} finally {
  if ('stop' in mongo) await mongo.stop()
}
