// The command line: `start`, and every command of the kernel and the plugins.
import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import { Type as t, type TSchema } from 'typebox'
import { askServer, runCommand, serveAdmin, type Commands } from './admin.ts'
import type { Clock } from '#ports/clock.ts'
import { bindAdapters, foldersOf } from '../adapters.ts'
import { boot, type Booted } from '../boot.ts'
import { readSettings } from '../settings/settings.ts'
import { helpLine, helpOf } from './settings-help.ts'
import { checkInstallation } from './check.ts'
import type { RunnableCommand } from '../commands.ts'
import { defectCode, guardProcess } from './guard.ts'
import { openInstallation } from './installation.ts'
import { createModuleLoader, importOnce } from '../module-loader.ts'
import type { Plugin } from '../plugin.ts'
import { readDesiredState } from '../management/desired-state.ts'
import { stayAwake } from '../loading/awake.ts'
import { checkDeclared } from '../loading/declared.ts'
import { loadPlugins } from '../loading/sources.ts'
import { createIsolation } from '../isolation/proxy-plugin.ts'
import { watchPlugins } from '../management/watch.ts'

/** Milliseconds that a stop may take beyond DRAIN_MS: runs are handed over, ports closed. */
const undoMsMax = 4000
const print = (text: string) => process.stdout.write(`${text}\n`)
type Offered = Omit<RunnableCommand, 'run'> & { readonly name: string }
const offeredOf = (commands: Iterable<[string, Omit<RunnableCommand, 'run'>]>): Offered[] =>
  [...commands].map(([name, { summary, options, needsServer, offline, joins }]) => ({
    name,
    summary,
    options,
    needsServer,
    offline,
    joins,
  }))
/** It runs here, whether or not a server lives. */
const isAlone = ({ offline, joins }: Pick<Offered, 'offline' | 'joins'>) =>
  Boolean(offline) && !joins

/** What a server does when it is asked. */
function commandsOf({ kernel, settings, engine }: Booted): Commands {
  const installation = {
    ...openInstallation(process.env, settings),
    bind: async () => ({ engine, close: async () => undefined }),
  }
  const all = kernel.commands(installation)
  const offered = offeredOf(all)
  const commands = new Map([...all].filter(([, one]) => !isAlone(one)))
  // Asks a living server first, because it may serve plugins from elsewhere.
  return commands.set('help', {
    summary: 'Every command with its options.',
    options: t.Object({}),
    run: async () => offered,
  })
}

async function start(): Promise<void> {
  // A failure on the way, such as a taken port, closes what was opened, so that the process can
  // end.
  await using opened = new AsyncDisposableStack()
  const booted = await boot({ env: process.env, guarded: true })
  const { kernel, pluginRegistry, settings, log } = booted
  opened.defer(kernel.stop)
  opened.defer(await serveAdmin(settings.DATA_DIR, () => commandsOf(booted)))
  const { port } = await kernel.listen()
  const serving = opened.move()
  let stopping = false
  const stop = async (signal: string, code = 0) => {
    if (stopping) return
    stopping = true
    log('info', 'stopping', { signal })
    // Runs that are left behind are safe: another process or the next start recovers them.
    void booted
      .engine<Clock>('clock')
      .sleep(settings.DRAIN_MS + undoMsMax)
      .then(() => {
        log('error', 'stop.left', { what: kernel.left(), ms: settings.DRAIN_MS + undoMsMax })
        process.exit(1)
      })
    const undone = await serving.disposeAsync().then(
      () => true,
      (error: unknown) => log('error', 'stop.failed', { error }),
    )
    process.exit(undone ? code : code || 1)
  }
  // Guards the process to its end, because a stop can cause defects too.
  guardProcess({ log, blame: booted.blame, onDefect: () => void stop('defect', defectCode) })
  process.on('SIGTERM', () => void stop('SIGTERM')).on('SIGINT', () => void stop('SIGINT'))
  process.on(
    'SIGHUP',
    () =>
      void pluginRegistry.reconcile().then(
        ({ changes }) => log('info', 'plugins.reconciled', { changes }),
        (error: unknown) => log('error', 'plugins.reconciled', { error }),
      ),
  )
  if (settings.PLUGINS_WATCH)
    serving.defer(
      watchPlugins({
        pluginRegistry: pluginRegistry,
        clock: booted.engine('clock'),
        log,
        pluginsDir: settings.PLUGINS_DIR,
      }),
    )
  // Printed last, because whoever reads the line may stop the server at once.
  const scheme = settings.TLS_CERT ? 'https' : 'http'
  print(
    `Serving ${scheme}://localhost:${port}/api/v1 (read ${scheme}://localhost:${port}/api/v1/docs)`,
  )
  flushCompileCache()
}

type Properties = Record<string, { type?: string; 'x-operand'?: boolean }>
const propertiesOf = (schema: TSchema) => (schema as { properties?: Properties }).properties ?? {}
const operandsOf = (schema: TSchema) =>
  Object.entries(propertiesOf(schema))
    .filter(([, property]) => property['x-operand'])
    .map(([name]) => name)

/**
 * Parses options by the command's schema, and words for options marked as operands. Every command
 * has `--json` and `--help`.
 */
function parseOptions(
  args: string[],
  schema: TSchema,
  words: readonly string[] = [],
): { options: Record<string, unknown>; json: boolean } {
  const properties = propertiesOf(schema)
  const operands = operandsOf(schema)
  const kinds = Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [
      name,
      { type: type === 'boolean' ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { values } = parseArgs({ args, options: { ...kinds, json: { type: 'boolean' } } })
  const { json, ...options } = values
  if (words.length > operands.length)
    throw new Error(`"${words[operands.length]}" is one word too many.`)
  return {
    options: { ...options, ...Object.fromEntries(words.map((word, i) => [operands[i]!, word])) },
    json: Boolean(json),
  }
}

/** A table of objects: one line each, columns by field. */
function tableOf(rows: readonly Record<string, unknown>[]): string {
  const names = Object.keys(rows[0]!)
  const lines = [
    names,
    ...rows.map(row => names.map(name => (row[name] === null ? '' : String(row[name])))),
  ]
  const widths = names.map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  return lines
    .map(
      line =>
        `\n  ${line
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}`,
    )
    .join('')
}

function textOf(value: unknown): string {
  if (Array.isArray(value) && value.length > 0 && value.every(one => typeof one === 'object'))
    return tableOf(value)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function report(answer: Awaited<ReturnType<typeof runCommand>>, json: boolean): void {
  if (!answer.ok) {
    if (json) print(JSON.stringify({ error: answer.error }))
    process.stderr.write(`${answer.error}\n`)
    process.exitCode = 1
    return
  }
  // A check that found something wrong has an answer and a non-zero exit code.
  if ((answer.result as { ok?: boolean } | null)?.ok === false) process.exitCode = 1
  if (json) print(JSON.stringify(answer.result))
  else
    for (const [name, value] of Object.entries((answer.result ?? {}) as object))
      if (value !== undefined) print(`${name}: ${textOf(value)}`)
}

/**
 * Describes plugins from elsewhere. If operators isolated any plugin, each one is described in a
 * thread, so that no foreign code runs in this process.
 */
async function describer(isolated: object): Promise<(entry: string) => Promise<Plugin>> {
  if (Object.keys(isolated).length === 0)
    return async entry => checkDeclared(await importOnce({ entry }))
  const settings = readSettings(process.env)
  const engines = await bindAdapters({
    env: process.env,
    settings,
    log: () => undefined,
    only: ['clock'],
  })
  const { describe } = createIsolation({
    clock: engines.engine<Clock>('clock'),
    clockUrl: settings.CLOCK_URL,
    folders: foldersOf(settings),
    stepMs: settings.PLUGIN_STEP_MS,
  })
  return async entry => (await describe({ entry })) as unknown as Plugin
}

/** This program's plugins, and the plugins from elsewhere that can be read. */
async function allPlugins(dataDir: string): Promise<Plugin[]> {
  const generations = createModuleLoader('commands')
  try {
    const { loaded, isolated } = readDesiredState(dataDir)
    const describe = await describer(isolated)
    const others = await Promise.all(loaded.map(entry => describe(entry).catch(() => undefined)))
    return [...(await loadPlugins()), ...others.filter(plugin => plugin !== undefined)]
  } finally {
    generations.close()
  }
}
/** Those of the installation come last. */
const offeredBy = (plugins: readonly Plugin[]): Offered[] =>
  plugins
    .flatMap(plugin => offeredOf(Object.entries(plugin.commands ?? {})))
    .toSorted((a, b) => Number(a.offline ?? false) - Number(b.offline ?? false))

/** The command with the longest name that matches. The words behind it are operands. */
const askedIn = (offered: readonly Offered[], words: readonly string[]): Offered | undefined =>
  offered
    .filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `))
    .toSorted((a, b) => b.name.length - a.name.length)[0]

/** Those that run here. */
function aloneCommands(plugins: readonly Plugin[], json: boolean): Commands {
  // Lets adapters from elsewhere import this platform, as long as the process lives.
  createModuleLoader('adapters')
  const installation = openInstallation(process.env, readSettings(process.env), json)
  return new Map(
    plugins
      .flatMap(plugin => Object.entries(plugin.commands ?? {}))
      .flatMap(([name, one]): [string, RunnableCommand][] =>
        'offline' in one && !one.joins
          ? [[name, { ...one, run: given => one.run(installation, given as never) }]]
          : [],
      ),
  )
}

/** Runs the command in the living server of DATA_DIR, or else in a kernel of its own. */
async function command(words: string[], rest: string[]): Promise<void> {
  const { DATA_DIR } = readSettings(process.env)
  const served = await askServer(DATA_DIR, 'help', {})
  const living = served?.ok ? (served.result as Offered[]) : undefined
  // Plugins from elsewhere may end this process: they are read for what no other offers.
  let offered = living ?? offeredBy(await loadPlugins())
  let asked = askedIn(offered, words)
  if (!asked || words.length > asked.name.split(' ').length + operandsOf(asked.options).length) {
    // What works beside a server need not be known to it.
    const further = offeredBy(await allPlugins(DATA_DIR)).filter(one => !living || isAlone(one))
    offered = [...offered, ...further]
    asked = askedIn(offered, words)
  }
  if (!asked)
    throw new Error(
      `There is no command "${words.join(' ')}". There are: ` +
        `${[...new Set(offered.map(({ name }) => name)), 'start'].sort().join(', ')}. ` +
        '--help says more.',
    )
  const { options, json } = parseOptions(
    rest,
    asked.options,
    words.slice(asked.name.split(' ').length),
  )
  if (isAlone(asked)) {
    const own = aloneCommands(await loadPlugins(), json)
    const alone = own.has(asked.name) ? own : aloneCommands(await allPlugins(DATA_DIR), json)
    return report(await runCommand(alone, asked.name, options), json)
  }
  const answer = await askServer(DATA_DIR, asked.name, options)
  if (answer) return report(answer, json)
  if (asked.needsServer)
    throw new Error(`No server runs on ${DATA_DIR}: ${asked.name} acts on a living one.`)
  const booted = await boot({ env: process.env, guarded: true })
  try {
    report(await runCommand(commandsOf(booted), asked.name, options), json)
  } finally {
    await booted.kernel.stop()
  }
}

/** Checks everything that a start opens, without a start. */
async function checkStart(json: boolean): Promise<void> {
  createModuleLoader('check')
  report(
    {
      ok: true,
      result: await checkInstallation(process.env, ({ DATA_DIR }) => allPlugins(DATA_DIR)),
    },
    json,
  )
}

async function help(): Promise<void> {
  const plugins = await allPlugins(readSettings(process.env).DATA_DIR)
  const usage = ({ name, options }: Offered) =>
    [
      name,
      ...operandsOf(options).map(operand => `<${operand}>`),
      ...Object.keys(propertiesOf(options))
        .filter(option => !operandsOf(options).includes(option))
        .map(option => `--${option} …`),
    ].join(' ')
  print('node kernel/main.ts <command> [options] [--json]\n\nCommands')
  for (const [name, about] of [
    [
      'start [--check]',
      'Starts the API; with --check it opens every adapter, tells what is wrong, and ends.',
    ],
    ...offeredBy(plugins).map(offered => [usage(offered), offered.summary] as const),
  ] as const)
    print(`  ${name.padEnd(52)} ${about}`)
  print('\nSettings (environment)')
  helpOf(plugins).forEach(row => print(`  ${helpLine(row)}`))
}

/**
 * Runs a command and keeps the process alive meanwhile. Its work may wait for a timer only, and
 * timers keep no process alive.
 */
export async function run(args: string[]): Promise<void> {
  const sleep = stayAwake()
  try {
    await perform(args)
  } finally {
    sleep()
  }
}

async function perform(args: string[]): Promise<void> {
  const at = args.findIndex(arg => arg.startsWith('-'))
  const words = at < 0 ? args : args.slice(0, at)
  const rest = at < 0 ? [] : args.slice(at)
  if (rest.includes('--help') || rest.includes('-h') || words.length === 0) return help()
  if (words.join(' ') !== 'start') return command(words, rest)
  return parseArgs({
    args: rest,
    options: { check: { type: 'boolean' }, json: { type: 'boolean' } },
  }).values.check
    ? checkStart(rest.includes('--json'))
    : start()
}
