// A MongoDB-compatible server: SecantusDB, the real WiredTiger engine behind MongoDB's protocol. It
// is not MongoDB.
import { pythonWith } from './python.ts'
import { started, type Started } from './server.ts'

// By its entry point: a script in a folder that was renamed names the interpreter where it was.
const entry =
  'import sys; from importlib.metadata import entry_points; ' +
  'sys.exit(entry_points(group="console_scripts")["secantusd-py"].load()())'

export async function startMongo(): Promise<Started> {
  const made = await pythonWith('mongodb')
  if ('why' in made) return made
  return started(
    'mongodb',
    ({ port, dataDir }) => ({
      command: made.python,
      args: ['-c', entry, '--host', '127.0.0.1', '--port', String(port), '--storage-path', dataDir],
    }),
    { url: port => `mongodb://127.0.0.1:${port}/` },
  )
}
