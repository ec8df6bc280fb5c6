// The installation that the environment describes, as commands of plugins get hold of it.
import type { Installation } from '../commands.ts'
import {
  addedIn,
  addedPath,
  chosenFor,
  foldersOf,
  loadAdapter,
  ports,
  schemesOf,
  type PortName,
} from '../adapters.ts'
import { bindAdapters } from '../engines.ts'
import { writeJsonAtomic } from '../json-file.ts'
import type { Environment, Settings } from '../settings/settings.ts'
import { askServer } from './admin.ts'

/** `json`: nothing but the answer goes to standard output. */
export function openInstallation(env: Environment, settings: Settings, json = false): Installation {
  const { DATA_DIR: dataDir } = settings
  const folders = foldersOf(settings)
  return {
    settings: settings as Installation['settings'],
    env,
    adapters: {
      ports,
      folders,
      added: addedIn(dataDir),
      save: list => writeJsonAtomic(addedPath(dataDir), list),
      schemesOf,
      load: loadAdapter,
    },
    placeOf: (port, chosen) =>
      chosenFor(port as PortName, { ...settings, ...chosen } as Settings, folders).value,
    bind: (chosen, only, given = {}) =>
      bindAdapters({
        env,
        settings: { ...settings, ...chosen } as Settings,
        log: () => undefined,
        only: only as readonly PortName[],
        given,
      }),
    isServed: async () => Boolean(await askServer(dataDir, 'help', {})),
    json,
    print: line => void (json || process.stdout.write(`${line}\n`)),
    tell: line => void process.stderr.write(`${line}\n`),
  }
}
