// Computes the order in which plugins can be built. A conflict is refused with a sentence that
// names both culprits. Nothing here has effects.
import { satisfies, validRange } from 'semver'
import type { Token } from '#ports/token.ts'
import { pathOf } from '../routing/endpoint.ts'
import { reservedNames, type Plugin } from '../plugin.ts'

export const kernelVersion = '1.0.0'
export type DependencyOrder = {
  readonly order: readonly Plugin[]
  /** Token id of a service → the plugin that provides it, and under which name. */
  readonly providers: ReadonlyMap<string, { plugin: string; service: string; version: string }>
}

const refuse = (sentence: string) => new Error(sentence)
/** Ports that a plugin cannot use at all without a declaration. */
const declarations = ['mail', 'plugins'] as const

function checkAlone(plugin: Plugin): void {
  if (!validRange(plugin.kernel) || !satisfies(kernelVersion, plugin.kernel))
    throw refuse(
      `${plugin.name} ${plugin.version} asks for kernel ${plugin.kernel}; this is ` +
        `${kernelVersion}.`,
    )
  for (const name of [...Object.keys(plugin.uses ?? {}), ...Object.keys(plugin.services ?? {})]) {
    if ((reservedNames as readonly string[]).includes(name))
      throw refuse(`${plugin.name} names a dependency or service "${name}", which is reserved.`)
    if (name in (plugin.uses ?? {}) && name in (plugin.services ?? {}))
      throw refuse(`${plugin.name} uses and makes "${name}".`)
  }
  const rows = Object.keys(plugin.contract ?? {})
  const handlers = Object.keys(plugin.routes ?? {})
  for (const row of rows)
    if (!handlers.includes(row))
      throw refuse(`${plugin.name} declares ${row} and has no handler for it.`)
  for (const row of handlers)
    if (!rows.includes(row))
      throw refuse(`${plugin.name} handles ${row}, which its contract does not declare.`)
  for (const [key, { limit }] of Object.entries(plugin.contract ?? {}))
    if (limit && !plugin.limits?.[limit.name])
      throw refuse(
        `${plugin.name} limits ${key} by "${limit.name}", a rate that it does not declare.`,
      )
}

/**
 * The route's shape, such as `GET /api/v1/runs/{}`: with its mount, and without the names of
 * parameters.
 */
const shapeOf = (plugin: Plugin, row: string) =>
  `${row.slice(0, row.indexOf(' '))} ${pathOf(plugin, row).replace(/\{\w+\}/g, '{}')}`

/**
 * Refuses names that two plugins share: routes (by full path), event types, collections, jobs,
 * commands.
 */
function checkClashes(plugins: readonly Plugin[]): void {
  const holders = new Map<string, string>()
  const claim = (what: string, name: string, plugin: string) => {
    const key = `${what} ${name}`
    const holder = holders.get(key)
    if (holder) throw refuse(`${key} is claimed by ${holder} and ${plugin}.`)
    holders.set(key, plugin)
  }
  for (const plugin of plugins) {
    claim('The plugin name', plugin.name, plugin.name)
    if (plugin.names) claim('The right to names', 'without a prefix', plugin.name)
    for (const name of Object.keys(plugin.limits ?? {})) claim('The rate limit', name, plugin.name)
    for (const row of Object.keys(plugin.contract ?? {}))
      claim('The route', shapeOf(plugin, row), plugin.name)
    for (const type of Object.keys(plugin.emits ?? {})) claim('The event type', type, plugin.name)
    for (const { name } of plugin.collections ?? []) claim('The collection', name, plugin.name)
    for (const name of Object.keys(plugin.jobs ?? {})) claim('The job', name, plugin.name)
    for (const name of Object.keys(plugin.commands ?? {})) claim('The command', name, plugin.name)
    for (const token of Object.values(plugin.provides ?? {}))
      claim('The service', token.id, plugin.name)
  }
}

export function dependencyOrderOf(
  plugins: readonly Plugin[],
  isPort: (token: Token) => boolean,
): DependencyOrder {
  plugins.forEach(checkAlone)
  checkClashes(plugins)
  const providers = new Map(
    plugins.flatMap(plugin =>
      Object.entries(plugin.provides ?? {}).map(
        ([name, token]) =>
          [token.id, { plugin: plugin.name, service: name, version: token.version }] as const,
      ),
    ),
  )
  const order: Plugin[] = []
  const byName = new Map(plugins.map(plugin => [plugin.name, plugin]))
  const visit = (plugin: Plugin, path: readonly string[]) => {
    if (order.includes(plugin)) return
    if (path.includes(plugin.name))
      throw refuse(
        'The plugins ' +
          `${[...path.slice(path.indexOf(plugin.name)), plugin.name].join(' → ')} need each ` +
          'other.',
      )
    for (const token of Object.values(plugin.uses ?? {})) {
      if (token.kind === 'point') continue
      if (token.kind === 'port') {
        if (token.id === 'port:http')
          throw refuse(
            `${plugin.name} needs ${token.id}, which is the platform's alone; a plugin ` +
              'declares its routes.',
          )
        const undeclared = declarations.find(
          one => `port:${one}` === token.id && plugin.may?.[one] === undefined,
        )
        if (undeclared)
          throw refuse(
            `${plugin.name} needs ${token.id} and does not declare what for (may: { ` +
              `${undeclared}: '…' }).`,
          )
        if (!isPort(token))
          throw refuse(`${plugin.name} needs ${token.id}, and no such port is bound.`)
        continue
      }
      const provider = providers.get(token.id)
      if (!provider) throw refuse(`${plugin.name} needs ${token.id}, and nothing provides it.`)
      if (!satisfies(provider.version, `^${token.version}`))
        throw refuse(
          `${plugin.name} needs ${token.id} ^${token.version}; ${provider.plugin} provides ` +
            `${provider.version}.`,
        )
      visit(byName.get(provider.plugin)!, [...path, plugin.name])
    }
    order.push(plugin)
  }
  for (const plugin of plugins) visit(plugin, [])
  return { order, providers }
}

/** The changed plugins, and all that use a service of theirs, directly or indirectly. */
export function affected(plan: DependencyOrder, changed: ReadonlySet<string>): Set<string> {
  const result = new Set(changed)
  for (const plugin of plan.order) {
    const takes = Object.values(plugin.uses ?? {}).some(
      token => token.kind === 'service' && result.has(plan.providers.get(token.id)?.plugin ?? ''),
    )
    if (takes) result.add(plugin.name)
  }
  return result
}
