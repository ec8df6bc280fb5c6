// Which organisations a plugin serves, where an operator limited it to some.
import type { DesiredStateStore } from './desired-state.ts'

export function createOrganisations(choices: DesiredStateStore) {
  let limits: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  return {
    /** Takes over what operators chose. */
    refresh(): void {
      const only = Object.entries(choices.read().only)
      limits = new Map(only.map(([name, organisations]) => [name, new Set(organisations)]))
    },
    isLimited: () => limits.size > 0,
    /** Null: all of them. */
    of: (plugin: string): string[] | null => (limits.has(plugin) ? [...limits.get(plugin)!] : null),
    isEnabled: (plugin: string, orgId: string | undefined): boolean =>
      !limits.has(plugin) || (orgId !== undefined && limits.get(plugin)!.has(orgId)),
  }
}
