// What a token that a plugin names stands for, seen by that plugin.
import type { Registry } from 'prom-client'
import { SystemClock, type Clock } from '#ports/clock.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Token } from '#ports/token.ts'
import type { Engines } from '../engines.ts'
import {
  Host,
  Broadcast,
  Plugins,
  type Broadcasting,
  type KernelInfo,
  type PluginRegistry,
} from '../kernel-ports.ts'
import type { Plugin, Scope } from '../plugin.ts'
import type { Settings } from '../settings/settings.ts'
import { declaredPeers } from './declared.ts'
import { scopedPort } from './face.ts'

type Parts = {
  readonly engines: Engines
  readonly clock: Clock
  readonly host: KernelInfo
  readonly peers: Broadcasting
  readonly pluginRegistry: () => PluginRegistry
  readonly settings: Settings
  readonly itemsFor: (point: string, scope: Scope | undefined) => readonly unknown[]
}

export function createTokenResolver({
  engines,
  clock,
  host,
  peers,
  pluginRegistry,
  settings,
  itemsFor,
}: Parts) {
  /** Limits all emails of one plugin together. */
  const mailWait = (plugin: string) =>
    engines.engine<RateLimiter>('limits').take('emails of a plugin', plugin, {
      count: settings.MAIL_PER_PLUGIN_PER_HOUR,
      perMs: 3_600_000,
    })

  return {
    isPort: (token: Token) =>
      token.id === Host.id ||
      token.id === Plugins.id ||
      token.id === Broadcast.id ||
      engines.entries().some(([name]) => token.id === `port:${name}`),
    /**
     * `previousDrained` resolves when the generation before is undone; `serviceOf` finds what is
     * shared.
     */
    resolverFor:
      (plugin: Plugin, previousDrained: Promise<void>, serviceOf: (tokenId: string) => unknown) =>
      (token: Token, metrics: Registry): unknown => {
        if (token.id === Host.id)
          return { ...host, metrics, previousDrained: () => previousDrained }
        if (token.id === Plugins.id) return pluginRegistry()
        if (token.id === Broadcast.id) return declaredPeers(peers, plugin)
        if (token.id === SystemClock.id) return clock
        if (token.kind === 'point') return (scope?: Scope) => itemsFor(token.id, scope)
        if (token.kind !== 'port') return serviceOf(token.id)
        const engine = engines.engine(token.id.slice('port:'.length))
        return scopedPort(token.id, engine, plugin, mailWait)
      },
  }
}
export type TokenResolver = ReturnType<typeof createTokenResolver>
