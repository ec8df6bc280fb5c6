// Commands about adapters: which there are, whether one keeps its port's promises, and adapters
// from packages. They run before any is bound,
// so that a storage can be added to an installation which cannot start without it; whoever runs
// them hands in what they need of the kernel.
import { existsSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { Type as t, type TSchema } from 'typebox'
import { packagesIn, refuse } from './packages/packages.ts'

/**
 * A package of adapters as DATA_DIR/adapters.json lists it; `folder` is relative to DATA_DIR, so
 * that a copy of it finds its own.
 */
export type Added = {
  readonly package: string
  readonly version: string
  readonly integrity: string
  readonly folder: string
  /** `<port> <scheme>:`, with commas between them. */
  readonly adapters: string
}
export type Tools = {
  readonly dataDir: string
  readonly ports: readonly string[]
  /** Of ADAPTERS_DIR and of what was added. */
  readonly folders: readonly string[]
  readonly added: readonly Added[]
  /** Replaces `added`. */
  save(packages: readonly Added[]): void
  schemesOf(port: string, folders: readonly string[]): string[]
  /** Imports an adapter; INVALID_FIELD where the file has none. */
  loadAdapter(
    port: string,
    setting: string,
    url: string,
    folders: readonly string[],
  ): Promise<unknown>
  check(asked: {
    readonly port: string
    readonly url: string
    readonly on?: string
    readonly letters?: string
  }): Promise<object>
}
type Command = {
  readonly summary: string
  readonly options: TSchema
  readonly run: (options: unknown) => Promise<unknown>
}

const word = (description: string) => t.String({ 'x-operand': true, description })
const just = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false })

/** What the commands do. */
function createActions({
  dataDir: given,
  ports,
  folders,
  added,
  save,
  schemesOf,
  loadAdapter,
}: Tools) {
  const dataDir = resolve(given)
  const packages = packagesIn(join(dataDir, 'adapters'))
  const without = (name: string) => added.filter(one => one.package !== name)
  /** By their places alone, as those of ADAPTERS_DIR are found: `<port>/<scheme>.js`. */
  const offeredIn = (folder: string) =>
    ports.flatMap(port =>
      existsSync(join(folder, port))
        ? readdirSync(join(folder, port))
            .filter(file => /^[a-z][a-z0-9+]*\.js$/.test(file))
            .map(file => ({ port, scheme: `${file.slice(0, -3)}:` }))
        : [],
    )
  const accept = async (folder: string, name: string) => {
    const offered = offeredIn(folder)
    const places = without(name).map(one => resolve(dataDir, one.folder))
    if (offered.length === 0)
      throw refuse(`${name} offers no adapter: it has no file <port>/<scheme>.js`)
    // Its own older version gives way; the same scheme from anywhere else would hide it, or be
    // hidden by it.
    const own = added.filter(one => one.package === name).map(one => resolve(dataDir, one.folder))
    const others = [
      ...folders.filter(one => !own.includes(resolve(one)) && !places.includes(resolve(one))),
      ...places,
    ]
    for (const { port, scheme } of offered) {
      if (schemesOf(port, others).includes(scheme))
        throw refuse(`${name} offers ${port} ${scheme}, which there is already`)
      await loadAdapter(port, `${port}/${scheme.slice(0, -1)}.js`, scheme, [folder]).catch(
        (error: Error) => {
          throw refuse(
            `${name} cannot be added: ${error.message.replaceAll(`${folder}/`, '')}`,
            error,
          )
        },
      )
    }
  }
  const list = async () => ({
    adapters: ports.map(port => ({
      port,
      setting: `${port.toUpperCase()}_URL`,
      schemes: schemesOf(port, folders).join(' '),
    })),
    packages: added.map(({ package: name, version, adapters, integrity }) => ({
      package: name,
      version,
      adapters,
      integrity,
    })),
  })
  const add = async (spec: string) => {
    const { path, name, version, integrity } = await packages.install(spec, staged =>
      accept(staged.path, staged.name),
    )
    const one = {
      package: name,
      version,
      integrity,
      folder: relative(dataDir, path),
      adapters: offeredIn(path)
        .map(({ port, scheme }) => `${port} ${scheme}`)
        .join(', '),
    }
    const previous = added.find(({ package: other }) => other === name)?.version
    save([...without(name), one])
    return {
      package: name,
      version,
      adapters: one.adapters,
      integrity,
      ...(previous === undefined ? {} : { previous }),
    }
  }
  const remove = async (name: string) => {
    if (!added.some(one => one.package === name))
      throw refuse(
        `${name} was not added; there are ${added.map(one => one.package).join(', ') || 'none'}`,
      )
    // First out of the list: a folder that nobody names harms nobody.
    save(without(name))
    packages.erase(name)
    return { package: name }
  }
  return { list, add, remove }
}

/** How the commands are called. */
export function adapterCommands(tools: Tools): ReadonlyMap<string, Command> {
  const { list, add, remove } = createActions(tools)
  return new Map<string, Command>([
    [
      'adapters list',
      {
        summary:
          'Which ports there are, by which URLs each can be bound, and which packages were added.',
        options: just({}),
        run: list,
      },
    ],
    [
      'adapters check',
      {
        summary:
          'Runs the conformance kit of a port against an adapter; {n} in a URL is another ' +
          'place for each check.',
        options: just({
          port: word('A port.'),
          url: word("As the port's setting has it."),
          on: t.Optional(
            t.String({
              description:
                '<port>=<url> of what it rides on, several with spaces between them; in ' +
                'memory otherwise.',
            }),
          ),
          letters: t.Optional(
            t.String({
              description: 'For mail: the folder in which what is sent arrives as .eml files.',
            }),
          ),
        }),
        run: options => tools.check(options as Parameters<Tools['check']>[0]),
      },
    ],
    [
      'adapters add',
      {
        summary:
          'Installs a package of adapters (name@version, or a tarball) for the next start, ' +
          'in place of its other version. Its install scripts are not run.',
        options: just({ package: word('As npm takes it.') }),
        run: options => add((options as { package: string }).package),
      },
    ],
    [
      'adapters remove',
      {
        summary: 'Takes a package of adapters out, and its folders away.',
        options: just({ package: word('Its name.') }),
        run: options => remove((options as { package: string }).package),
      },
    ],
  ])
}
