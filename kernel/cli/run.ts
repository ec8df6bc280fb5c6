// The command line: `start`, and every command of the kernel and the plugins.
import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import { Type as t, type TSchema } from 'typebox'
import { askServer, runCommand, serveAdmin, type Commands } from './admin.ts'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import {
  addedIn,
  addedPath,
  bindAdapters,
  chosenFor,
  foldersOf,
  loadAdapter,
  ports,
  schemesOf,
  type PortName,
} from '../adapters.ts'
import { boot, type Booted } from '../boot.ts'
import { readSettings } from '../settings.ts'
import { helpLine, helpOf } from './settings-help.ts'
import { checkInstallation } from './check.ts'
import { defectCode, guardProcess } from './guard.ts'
import { createModuleLoader, importOnce } from '../module-loader.ts'
import type { Plugin, RunnableCommand } from '../plugin.ts'
import { readDesiredState } from '../management/desired-state.ts'
import { stayAwake } from '../loading/awake.ts'
import { loadPlugins, writeJsonAtomic } from '../management/sources.ts'
import { createIsolation } from '../isolation/proxy-plugin.ts'
import { watchPlugins } from '../management/watch.ts'

/** Milliseconds that a stop may take beyond DRAIN_MS: runs are handed over, ports closed. */
const undoMsMax = 4000
const print = (text: string) => process.stdout.write(`${text}\n`)
type Offered = {
  readonly name: string
  readonly summary: string
  readonly options: TSchema
  readonly needsServer?: true | undefined
}
const offeredOf = (commands: Commands) =>
  [...commands].map(([name, { summary, options }]): Offered => ({ name, summary, options }))

/** Imports by path, because the kernel contains neither the kits nor the operator's commands. */
const found = <T>(path: string) =>
  import(
    new URL(`../../${path}${import.meta.filename.slice(-3)}`, import.meta.url).href
  ) as Promise<T>
type Backup = {
  backupCommand: (settings: object, storage: object, search: object) => RunnableCommand
  backupOptions: TSchema
  restoreOptions: TSchema
  restore: (from: string, dataDir: string) => Promise<object>
}
const backup = () => found<Backup>('plugins/operator/backup')

function commandsOf({ kernel, settings, engine }: Booted, { backupCommand }: Backup): Commands {
  const commands = new Map([
    ...kernel.commands(),
    ['backup', backupCommand(settings, engine('storage'), engine('search'))] as const,
  ])
  const offered = offeredOf(commands)
  // Asks a living server first, because it may serve plugins from elsewhere.
  return commands.set('help', {
    summary: 'Every command with its options.',
    options: t.Object({}),
    run: async () => offered,
  })
}

async function start(): Promise<void> {
  // What fails on the way (a port that is taken, a certificate that is none) undoes what was
  // opened, so that the process ends.
  await using opened = new AsyncDisposableStack()
  const copying = await backup()
  const booted = await boot({ env: process.env, guarded: true })
  const { kernel, pluginRegistry, settings, log } = booted
  opened.defer(kernel.stop)
  opened.defer(await serveAdmin(settings.DATA_DIR, () => commandsOf(booted, copying)))
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

type Checked = { readonly check: string; readonly result: string; readonly detail: string }
/** Commands that run before any adapter is bound. */
async function adapterCommands(json: boolean): Promise<Commands> {
  const settings = readSettings(process.env)
  const { DATA_DIR: dataDir } = settings
  const folders = foldersOf(settings)
  // Prints each check when it is done, and the failed ones again at the end.
  const onChecked = ({ check: title, result, detail }: Checked) =>
    json || print(`${result.padEnd(11)} ${title}${detail ? `: ${detail}` : ''}`)
  const check = async (asked: object) => {
    const { checkAdapter } = await found<{ checkAdapter: (asked: object) => Promise<object> }>(
      'test/kit/check',
    )
    const result = await checkAdapter({ ...asked, folders, env: process.env, onChecked })
    return json ? result : { ...result, checks: undefined }
  }
  const { copyCommand } = await found<{ copyCommand: (tools: object) => RunnableCommand }>(
    'plugins/operator/copy/command',
  )
  const copying = copyCommand({
    settings,
    bind: (chosen: object, only: PortName[], given: Record<string, unknown>) =>
      bindAdapters({
        env: process.env,
        settings: { ...settings, ...chosen },
        log: () => undefined,
        only,
        given,
      }),
    placeOf: (port: PortName, chosen: object) =>
      chosenFor(port, { ...settings, ...chosen }, folders).value,
    tell: (line: string) => process.stderr.write(`${line}\n`),
  })
  return new Map([
    ...(
      await found<{ adapterCommands: (tools: object) => Commands }>('plugins/operator/adapters')
    ).adapterCommands({
      dataDir,
      ports,
      folders,
      added: addedIn(dataDir),
      save: (list: object) => writeJsonAtomic(addedPath(dataDir), list),
      schemesOf,
      loadAdapter,
      check,
    }),
    ['storage copy', copying],
  ])
}

/**
 * Options by the command's schema, and words for those marked as operands; `--json` and `--help`
 * belong to all.
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
 * What a plugin elsewhere says of itself. Where some run in threads, no code of others is imported
 * before it is known whose it is.
 */
async function describer(isolated: object): Promise<(entry: string) => Promise<Plugin>> {
  if (Object.keys(isolated).length === 0) return entry => importOnce({ entry })
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

/** This program's plugins, and those that were loaded from elsewhere as far as they can be read. */
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
const offeredBy = async (plugins: readonly Plugin[]): Promise<Offered[]> => [
  ...plugins
    .flatMap(plugin => Object.entries(plugin.commands ?? {}))
    .map(([name, { summary, options, needsServer }]) => ({ name, summary, options, needsServer })),
  {
    name: 'backup',
    summary: 'Copies the embedded installation into an empty folder while it runs.',
    options: (await backup()).backupOptions,
  },
]

/** Runs the command in the living server of DATA_DIR, or else in a kernel of its own. */
async function command(words: string[], rest: string[]): Promise<void> {
  const { DATA_DIR } = readSettings(process.env)
  const standalone = await adapterCommands(rest.includes('--json'))
  const served = await askServer(DATA_DIR, 'help', {})
  const offered = [
    ...offeredOf(standalone),
    ...(served?.ok ? (served.result as Offered[]) : await offeredBy(await allPlugins(DATA_DIR))),
  ]
  // The command with the longest name that matches. The words behind it are operands.
  const asked = offered
    .filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `))
    .toSorted((a, b) => b.name.length - a.name.length)[0]
  if (!asked)
    throw new Error(
      `There is no command "${words.join(' ')}". There are: ` +
        `${[...offered.map(({ name }) => name), 'restore', 'start'].sort().join(', ')}. ` +
        '--help says more.',
    )
  const { options, json } = parseOptions(
    rest,
    asked.options,
    words.slice(asked.name.split(' ').length),
  )
  if (standalone.has(asked.name)) {
    // Lets adapters from elsewhere import this platform, as long as the process lives.
    createModuleLoader('adapters')
    return report(await runCommand(standalone, asked.name, options), json)
  }
  const answer = await askServer(DATA_DIR, asked.name, options)
  if (answer) return report(answer, json)
  if (asked.needsServer)
    throw new Error(`No server runs on ${DATA_DIR}: ${asked.name} acts on a living one.`)
  const booted = await boot({ env: process.env, guarded: true })
  try {
    report(await runCommand(commandsOf(booted, await backup()), asked.name, options), json)
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
    ...[...(await offeredBy(plugins)), ...offeredOf(await adapterCommands(false))].map(
      offered => [usage(offered), offered.summary] as const,
    ),
    ['restore --from …', 'Makes a copy the DATA_DIR; the server is stopped.'],
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
  switch (words.join(' ')) {
    case 'start':
      return parseArgs({
        args: rest,
        options: { check: { type: 'boolean' }, json: { type: 'boolean' } },
      }).values.check
        ? checkStart(rest.includes('--json'))
        : start()
    case 'restore': {
      const { restore, restoreOptions } = await backup()
      const {
        options: { from },
        json,
      } = parseOptions(rest, restoreOptions)
      const { DATA_DIR } = readSettings(process.env)
      if (typeof from !== 'string')
        throw fault('INVALID_FIELD', { field: 'from', why: 'is required' })
      if (await askServer(DATA_DIR, 'restore', {}))
        throw fault('INVALID_FIELD', {
          field: 'DATA_DIR',
          why: 'a server runs on it; stop it first',
        })
      return report({ ok: true, result: await restore(from, DATA_DIR) }, json)
    }
    default:
      return command(words, rest)
  }
}
