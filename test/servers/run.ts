// Runs a command beside the servers that the tests can use, each started here unless its URL is
// given; what cannot be started is told with the reason, and its tests are skipped.
//   npm run test:servers                 the tests that need a server
//   npm run test:servers -- npm test     all tests
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startMongo } from './mongodb.ts'
import { startS3 } from './s3.ts'
import { startOpenSearch } from './opensearch.ts'
import type { Started } from './server.ts'

/** `variable` names a server of the user's own; `tests`: parts of the paths of its tests. */
const servers: readonly {
  readonly variable: string
  readonly name: string
  readonly here: string
  readonly tests: readonly string[]
  start(): Promise<Started>
}[] = [
  {
    variable: 'MONGODB_URL',
    name: 'MongoDB',
    here: 'MongoDB-compatible server (SecantusDB, not MongoDB)',
    tests: ['mongodb', 'agenda', 'test/processes'],
    start: startMongo,
  },
  {
    variable: 'S3_URL',
    name: 'S3',
    here: 'server that speaks S3 (moto, not S3)',
    tests: ['s3'],
    start: startS3,
  },
  {
    variable: 'OPENSEARCH_URL',
    name: 'OpenSearch',
    here: 'OpenSearch 2.19.1',
    tests: ['opensearch'],
    start: startOpenSearch,
  },
]

const say = (text: string) => process.stdout.write(`${text}\n`)
const [command, ...args] =
  process.argv.length > 2
    ? process.argv.slice(2)
    : [process.execPath, 'test/run.ts', '--all', ...servers.flatMap(({ tests }) => tests)]
const env: NodeJS.ProcessEnv = { ...process.env }
await using running = new AsyncDisposableStack()
for (const { variable, name, here, start } of servers) {
  if (env[variable]) {
    say(`${name}: the server that ${variable} names`)
    continue
  }
  const server = await start()
  if ('why' in server) say(`${here}: skipped, ${server.why}`)
  else {
    say(`${here}: started`)
    env[variable] = server.url
    // Tests that kill a server start one of their own, where this one is not the user's.
    env['TEST_SERVERS'] = [env['TEST_SERVERS'], variable].filter(Boolean).join(' ')
    running.defer(server.stop)
  }
}
process.exitCode = Number(
  (await once(spawn(command!, args, { stdio: 'inherit', env }), 'exit'))[0] ?? 1,
)
