// What the command line offers: `start`, and every command of the kernel and the plugins.
import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import type { TSchema } from 'typebox'
import { askServer, runCommand, serveAdmin, type Commands } from './admin.ts'
import { fault } from '#contracts/faults.ts'
import { backupCommand, backupOptions, restore, restoreOptions } from './backup.ts'
import { boot, type Booted } from './boot.ts'
import { helpOf, readSettings } from './settings.ts'
import { loadPlugins } from './sources.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)
const commandsOf = ({ kernel, settings, engine }: Booted): Commands => new Map([...kernel.commands(), ['backup', backupCommand(settings, engine('storage'))]])

async function start(): Promise<void> {
  // What fails on the way (a port that is taken, a certificate that is none) undoes what was opened, so that the process ends.
  await using opened = new AsyncDisposableStack()
  const booted = await boot({ env: process.env })
  const { kernel, settings, log } = booted
  opened.defer(kernel.stop)
  opened.defer(await serveAdmin(settings.DATA_DIR, () => commandsOf(booted)))
  const { port } = await kernel.listen()
  const serving = opened.move()
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log('info', 'stopping', { signal })
    await serving.disposeAsync()
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop('SIGTERM')).on('SIGINT', () => void stop('SIGINT'))
  // Said last: whoever reads it may stop us at once.
  const scheme = settings.TLS_CERT ? 'https' : 'http'
  print(`Serving ${scheme}://localhost:${port}/api/v1 (read ${scheme}://localhost:${port}/api/v1/docs)`)
  flushCompileCache()
}

/** Options by the command's schema; `--json` and `--help` belong to all. */
function parseOptions(args: string[], schema: TSchema): { options: Record<string, unknown>; json: boolean } {
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
  const kinds = Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, { type: type === 'boolean' ? 'boolean' as const : 'string' as const }]))
  const { values } = parseArgs({ args, options: { ...kinds, json: { type: 'boolean' } } })
  const { json, ...options } = values
  return { options, json: Boolean(json) }
}

function report(answer: Awaited<ReturnType<typeof runCommand>>, json: boolean): void {
  if (!answer.ok) {
    if (json) print(JSON.stringify({ error: answer.error }))
    process.stderr.write(`${answer.error}\n`)
    process.exitCode = 1
    return
  }
  // A check that was made and found something is an answer, and no success.
  if ((answer.result as { ok?: boolean } | null)?.ok === false) process.exitCode = 1
  if (json) print(JSON.stringify(answer.result))
  else for (const [name, value] of Object.entries((answer.result ?? {}) as object)) print(`${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
}

/** In the living server of DATA_DIR when there is one, else in a kernel of its own that opens no port. */
async function command(words: string[], rest: string[]): Promise<void> {
  const plugins = await loadPlugins(), { DATA_DIR } = readSettings(process.env), name = words.join(' ')
  const offered = new Map(plugins.flatMap(plugin => Object.entries(plugin.commands ?? {})))
  const schema = name === 'backup' ? backupOptions : offered.get(name)?.options
  if (!schema) throw new Error(`There is no command "${name}". There are: ${[...offered.keys(), 'backup', 'restore', 'start'].sort().join(', ')}. --help says more.`)
  const { options, json } = parseOptions(rest, schema)
  const asked = await askServer(DATA_DIR, name, options)
  if (asked) return report(asked, json)
  const booted = await boot({ env: process.env, plugins })
  try {
    report(await runCommand(commandsOf(booted), name, options), json)
  } finally {
    await booted.kernel.stop()
  }
}

async function help(): Promise<void> {
  const plugins = await loadPlugins()
  const commands = plugins.flatMap(plugin => Object.entries(plugin.commands ?? {})).map(([name, { summary, options }]) => [`${name} ${Object.keys((options as { properties?: object }).properties ?? {}).map(option => `--${option} …`).join(' ')}`, summary] as const)
  print('node kernel/main.ts <command> [options] [--json]\n\nCommands')
  for (const [name, about] of [['start', 'Starts the API.'], ...commands, ['backup --to …', 'Copies the embedded installation into an empty folder while it runs.'], ['restore --from …', 'Makes a copy the DATA_DIR; the server is stopped.']] as const) print(`  ${name.padEnd(52)} ${about}`)
  print('\nSettings (environment)')
  for (const { name, fallback, about } of helpOf(plugins)) print(`  ${name.padEnd(32)} ${about}${fallback ? ` [${fallback}]` : ''}`)
}

export async function run(args: string[]): Promise<void> {
  const at = args.findIndex(arg => arg.startsWith('-')), words = at < 0 ? args : args.slice(0, at), rest = at < 0 ? [] : args.slice(at)
  if (rest.includes('--help') || rest.includes('-h') || words.length === 0) return help()
  switch (words.join(' ')) {
    case 'start':
      parseArgs({ args: rest, options: {} })
      return start()
    case 'restore': {
      const { options: { from }, json } = parseOptions(rest, restoreOptions), { DATA_DIR } = readSettings(process.env)
      if (typeof from !== 'string') throw fault('INVALID_FIELD', { field: 'from', why: 'is required' })
      if (await askServer(DATA_DIR, 'restore', {})) throw fault('INVALID_FIELD', { field: 'DATA_DIR', why: 'a server runs on it; stop it first' })
      return report({ ok: true, result: await restore(from, DATA_DIR) }, json)
    }
    default:
      return command(words, rest)
  }
}
