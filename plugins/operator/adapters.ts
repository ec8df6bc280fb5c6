// Commands about adapters: which there are, whether one keeps its port's promises, and adapters
// from packages. They run before any is bound, so that a storage can be added to an installation
// which cannot start without it.
import { existsSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { Type as t, type Static, type TSchema } from 'typebox'
import { offlineCommand, type Installation } from '#kernel'
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
const word = (description: string) => t.String({ 'x-operand': true, description })
const just = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false })

function adaptersOf({
  settings,
  env,
  json,
  print,
  adapters: { ports, folders, added: saved, save, schemesOf, load },
}: Installation) {
  const dataDir = resolve(settings.DATA_DIR)
  const added = saved as readonly Added[]
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
      await load(port, `${port}/${scheme.slice(0, -1)}.js`, scheme, [folder]).catch(
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
  // Long work tells how far it is; what failed is told again, together.
  const check = async (given: Asked) => {
    const { checkAdapter } = await import('../../test/conformance/check/check.ts')
    const found = await checkAdapter({
      ...given,
      folders,
      env,
      onChecked: ({ check: title, result, detail }) =>
        print(`${result.padEnd(11)} ${title}${detail ? `: ${detail}` : ''}`),
    })
    return json ? found : { ...found, checks: undefined }
  }
  return { list, add, remove, check }
}

const asked = just({
  port: word('A port.'),
  url: word("As the port's setting has it."),
  on: t.Optional(
    t.String({
      description:
        '<port>=<url> of what it rides on, several with spaces between them; in memory otherwise.',
    }),
  ),
  letters: t.Optional(
    t.String({
      description: 'For mail: the folder in which what is sent arrives as .eml files.',
    }),
  ),
})
type Asked = Static<typeof asked>

export const adapterCommands = {
  'adapters list': offlineCommand({
    summary:
      'Which ports there are, by which URLs each can be bound, and which packages were added.',
    options: just({}),
    offline: true,
    run: installation => adaptersOf(installation).list(),
  }),
  'adapters check': offlineCommand({
    summary:
      'Runs the conformance kit of a port against an adapter; {n} in a URL is another ' +
      'place for each check.',
    options: asked,
    offline: true,
    run: (installation, options) => adaptersOf(installation).check(options),
  }),
  'adapters add': offlineCommand({
    summary:
      'Installs a package of adapters (name@version, or a tarball) for the next start, ' +
      'in place of its other version. Its install scripts are not run.',
    options: just({ package: word('As npm takes it.') }),
    offline: true,
    run: (installation, given) => adaptersOf(installation).add(given.package),
  }),
  'adapters remove': offlineCommand({
    summary: 'Takes a package of adapters out, and its folders away.',
    options: just({ package: word('Its name.') }),
    offline: true,
    run: (installation, given) => adaptersOf(installation).remove(given.package),
  }),
}
