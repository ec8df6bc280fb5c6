// `start --check`: opens every adapter as a start would, pings it and closes it again. It reports
// what is wrong and serves nothing.
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Log } from '#ports/adapter.ts'
import type { Lifecycle } from '#ports/token.ts'
import { chosenFor, foldersOf, ports, type PortName } from '../adapters.ts'
import { bindAdapters } from '../engines.ts'
import type { Plugin } from '../plugin.ts'
import {
  readConfig,
  readRates,
  readSettings,
  type Environment,
  type Settings,
} from '../settings/settings.ts'

/** The result of one check. `what`: a port, a plugin, or the address to listen on. */
type Checked = {
  readonly what: string
  readonly setting: string
  readonly adapter: string
  readonly result: 'ok' | 'wrong'
  readonly detail: string
}
const silent: Log = () => undefined
const okay = (what: string, setting: string, adapter = ''): Checked => ({
  what,
  setting,
  adapter,
  result: 'ok',
  detail: '',
})
const wrong = (what: string, setting: string, adapter: string, error: unknown): Checked => ({
  what,
  setting,
  adapter,
  result: 'wrong',
  detail: (error as Error).message,
})
const schemeOf = (value: string) => value.slice(0, value.indexOf(':') + 1)

/** Hides `close`, so that an adapter which uses another engine cannot close it. */
const kept = (engine: unknown): unknown =>
  Object.create(engine as object, { close: { value: async () => undefined } })

async function adaptersOf(env: Environment, settings: Settings): Promise<Checked[]> {
  const rows: Checked[] = []
  const given: Record<string, unknown> = {}
  const opened: Lifecycle[] = []
  const one = async (port: PortName): Promise<Checked> => {
    const { setting, value } = chosenFor(port, settings, foldersOf(settings))
    const scheme = schemeOf(value)
    try {
      const engines = await bindAdapters({ env, settings, log: silent, only: [port], given })
      const engine = engines.engine<Lifecycle>(port)
      opened.push(engine)
      given[port] = kept(engine)
      await engine.ping?.()
      return okay(port, setting, scheme)
    } catch (error) {
      return wrong(port, setting, scheme, error)
    }
  }
  for (const port of ports) rows.push(await one(port))
  for (const engine of opened.reverse()) await engine.close?.().catch(() => undefined)
  return rows
}

function pluginOf(plugin: Plugin, env: Environment): Checked[] {
  try {
    readConfig(plugin, env)
    readRates(plugin, env)
    return []
  } catch (error) {
    return [wrong(`plugin ${plugin.name}`, '', '', error)]
  }
}

/** Tries to listen on the address. A server that runs there already counts as a fault. */
async function addressOf({ HOST, PORT, TLS_CERT, TLS_KEY }: Settings): Promise<Checked[]> {
  const missing = Object.entries({ TLS_CERT, TLS_KEY })
    .filter(([, path]) => path !== undefined && !existsSync(path))
    .map(([name]) => wrong('https', name, '', new Error('there is no such file')))
  const server = createServer()
  const taken = await new Promise<Error | undefined>(done =>
    server.once('error', done).listen(PORT, HOST, () => done(undefined)),
  )
  if (!taken) await new Promise(closed => server.close(closed))
  return [
    ...missing,
    taken
      ? wrong(
          'address',
          'PORT',
          '',
          new Error(
            `${HOST}:${PORT} cannot be listened on (${(taken as NodeJS.ErrnoException).code})`,
          ),
        )
      : okay('address', 'PORT'),
  ]
}

export async function checkInstallation(
  env: Environment,
  plugins: (settings: Settings) => Promise<readonly Plugin[]>,
): Promise<{ readonly ok: boolean; readonly checks: readonly Checked[] }> {
  let settings: Settings
  try {
    settings = readSettings(env)
  } catch (error) {
    return { ok: false, checks: [wrong('settings', '', '', error)] }
  }
  const checks = [
    ...(await adaptersOf(env, settings)),
    ...(await addressOf(settings)),
    ...(await plugins(settings)).flatMap(plugin => pluginOf(plugin, env)),
  ]
  return { ok: checks.every(({ result }) => result === 'ok'), checks }
}
