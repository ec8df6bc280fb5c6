// What the command line offers: `start`, and every command of the kernel and the plugins.
import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import type { TSchema } from 'typebox'
import { askServer, runCommand, serveAdmin, type Commands } from './admin.ts'
import { backupCommand, restore } from './backup.ts'
import { boot, type Booted } from './boot.ts'
import { helpOf, readSettings } from './settings.ts'
import { loadPlugins } from './sources.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)
const commandsOf = ({ kernel, settings, engine }: Booted): Commands => new Map([...kernel.commands(), ['backup', backupCommand(settings.DATA_DIR, engine('storage'))]])

async function start(): Promise<void> {
  const booted = await boot({ env: process.env })
  const { kernel, settings, log } = booted
  const closeAdmin = await serveAdmin(settings.DATA_DIR, () => commandsOf(booted))
  const { port } = await kernel.listen()
  const scheme = settings.TLS_CERT ? 'https' : 'http'
  print(`Serving ${scheme}://localhost:${port}/api/v1 (read ${scheme}://localhost:${port}/api/v1/docs)`)
  flushCompileCache()
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log('info', 'stopping', { signal })
    await closeAdmin()
    await kernel.stop()
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop('SIGTERM')).on('SIGINT', () => void stop('SIGINT'))
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
  } else if (json) print(JSON.stringify(answer.result))
  else for (const [name, value] of Object.entries((answer.result ?? {}) as object)) print(`${name}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
}

/** In the living server of DATA_DIR when there is one, else in a kernel of its own that opens no port. */
async function command(words: string[], rest: string[]): Promise<void> {
  const plugins = await loadPlugins(), { DATA_DIR } = readSettings(process.env), name = words.join(' ')
  const offered = new Map(plugins.flatMap(plugin => Object.entries(plugin.commands ?? {})))
  const schema = name === 'backup' ? backupCommand('', {} as never).options : offered.get(name)?.options
  if (!schema) throw new Error(`There is no command "${name}". Try --help.`)
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
  if (words[0] === 'start') return start()
  if (words[0] === 'restore') {
    const { values } = parseArgs({ args: rest, options: { from: { type: 'string' }, json: { type: 'boolean' } } })
    return report({ ok: true, result: restore(values.from ?? '', readSettings(process.env).DATA_DIR) }, Boolean(values.json))
  }
  return command(words, rest)
}
