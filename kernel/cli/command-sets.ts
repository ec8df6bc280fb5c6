// The commands that there are: what plugins offer, what a server does, and what runs here.
import { Type as t } from 'typebox'
import type { Booted } from '../boot.ts'
import type { RunnableCommand } from '../commands.ts'
import { createModuleLoader } from '../module-loader.ts'
import type { Plugin } from '../plugin.ts'
import { readSettings } from '../settings/settings.ts'
import type { Commands } from './admin.ts'
import { openInstallation } from './installation.ts'

export type Offered = Omit<RunnableCommand, 'run'> & { readonly name: string }
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
export const isAlone = ({ offline, joins }: Pick<Offered, 'offline' | 'joins'>) =>
  Boolean(offline) && !joins

/** Those of the installation come last. */
export const offeredBy = (plugins: readonly Plugin[]): Offered[] =>
  plugins
    .flatMap(plugin => offeredOf(Object.entries(plugin.commands ?? {})))
    .toSorted((a, b) => Number(a.offline ?? false) - Number(b.offline ?? false))

/** The command with the longest name that matches. The words behind it are operands. */
export const askedIn = (
  offered: readonly Offered[],
  words: readonly string[],
): Offered | undefined =>
  offered
    .filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `))
    .toSorted((a, b) => b.name.length - a.name.length)[0]

/** What a server does when it is asked. */
export function commandsOf({ kernel, settings, engine }: Booted): Commands {
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

/** Those that run here. */
export function aloneCommands(plugins: readonly Plugin[], json: boolean): Commands {
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
