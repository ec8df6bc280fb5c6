// The command line: `start`, and every command of the kernel and the plugins.
import { parseArgs } from 'node:util'
import { boot } from '../boot.ts'
import { stayAwake } from '../loading/awake.ts'
import { loadPlugins } from '../loading/sources.ts'
import { createModuleLoader } from '../module-loader.ts'
import { readSettings } from '../settings/settings.ts'
import { askServer, runCommand } from './admin.ts'
import { print, report } from './answer.ts'
import { checkInstallation } from './check.ts'
import {
  aloneCommands,
  askedIn,
  commandsOf,
  isAlone,
  offeredBy,
  type Offered,
} from './command-sets.ts'
import { allPlugins } from './known-plugins.ts'
import { operandsOf, parseOptions, usageOf } from './options.ts'
import { helpLine, helpOf } from './settings-help.ts'
import { start } from './start.ts'

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
  print('node kernel/main.ts <command> [options] [--json]\n\nCommands')
  for (const [name, about] of [
    [
      'start [--check]',
      'Starts the API; with --check it opens every adapter, tells what is wrong, and ends.',
    ],
    ...offeredBy(plugins).map(offered => [usageOf(offered), offered.summary] as const),
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
