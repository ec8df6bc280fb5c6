// The routing table: everything that a request can reach, in one immutable value that is replaced
// whole.
import type { Method } from '#contracts/contract.ts'
import { endpointsOf, type Compiling, type Endpoint } from './endpoint.ts'
import type { Instance } from '../loading/instance.ts'
import type { Contributed } from '../loading/items.ts'

export type RoutingTable = {
  readonly instances: ReadonlyMap<string, Instance>
  /** `METHOD /path` with its mount → its endpoint. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  /** Token id of a point → its items and the plugins that contribute them. */
  readonly points: ReadonlyMap<string, Contributed>
}
export const emptyRoutingTable: RoutingTable = {
  instances: new Map(),
  endpoints: new Map(),
  points: new Map(),
}

export const methodOf = ({ key }: Pick<Endpoint, 'key'>) => key.slice(0, key.indexOf(' ')) as Method
const idOf = (endpoint: Pick<Endpoint, 'key' | 'path'>) => `${methodOf(endpoint)} ${endpoint.path}`

/**
 * Makes the next table. Instances that stay keep their compiled endpoints, because compiling costs
 * time.
 */
export function createRoutingTable(
  current: RoutingTable,
  instances: ReadonlyMap<string, Instance>,
  compiling: Compiling,
): RoutingTable {
  const points = new Map<string, { items: unknown[]; plugins: string[] }>()
  for (const { items, plugin } of instances.values())
    for (const { point, item } of items) {
      const { items: all, plugins } = points.get(point) ?? { items: [], plugins: [] }
      points.set(point, { items: [...all, item], plugins: [...plugins, plugin.name] })
    }
  const kept = Map.groupBy(current.endpoints.values(), ({ instance }) => instance)
  const endpoints = [...instances.values()].flatMap(
    instance => kept.get(instance) ?? endpointsOf(instance, compiling),
  )
  return {
    instances,
    points,
    endpoints: new Map(endpoints.map(endpoint => [idOf(endpoint), endpoint])),
  }
}
