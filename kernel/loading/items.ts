// Checks contributed items against the rules of their points, before anybody uses the items.
import type { TSchema } from 'typebox'
import type { Instance } from './instance.ts'
import { Authenticators, PluginFiles, type ItemRules, type Plugin } from '../plugin.ts'
import { createValidator, type Validator } from '../validation/validate.ts'

/** `plugins[i]` contributes `items[i]`. */
export type Contributed = {
  readonly items: readonly unknown[]
  readonly plugins: readonly string[]
}
type Fields = Readonly<Record<string, unknown>>
type Ruled = { readonly id: string; readonly rules?: ItemRules }
/** `owner`: the plugin that declared the rules; absent for the kernel's own points. */
type Known = { readonly rules: ItemRules; readonly owner?: string }

/** Rules by the id of a point. The plugin that uses a point's items declares their rules. */
function rulesIn(plugins: Iterable<Plugin>): Map<string, Known> {
  const known = new Map<string, Known>(
    [Authenticators, PluginFiles].map(({ id, rules }: Ruled) => [id, { rules: rules! }]),
  )
  for (const { name, uses = {} } of plugins)
    for (const { id, rules } of Object.values(uses) as Ruled[]) {
      if (rules && !known.has(id)) known.set(id, { rules, owner: name })
    }
  return known
}

function misfit(
  item: unknown,
  { fields, methods = {}, schemas = [], unique, reserved = [] }: ItemRules,
  validator: Validator,
): string | undefined {
  if (typeof item !== 'object' || item === null) return 'it is no object'
  const value = item as Fields
  const kind = (key: string) => typeof value[key]
  const missing = Object.entries(methods).find(
    ([key, need]) => kind(key) !== 'function' && (need === 'required' || value[key] !== undefined),
  )
  if (missing) return `${missing[0]} is no function`
  if (unique !== undefined && reserved.includes(String(value[unique])))
    return `the ${unique} "${String(value[unique])}" is the platform's own`
  try {
    if (fields) validator.check('body', fields)(item)
  } catch (error) {
    return (error as Error).message
  }
  for (const key of schemas)
    try {
      validator.check('body', value[key] as TSchema)
    } catch (error) {
      return `${key} is no valid JSON Schema: ${(error as Error).message}`
    }
  return undefined
}

/**
 * Throws a sentence that names the culprit, or both. Items that are not new, with rules that are
 * not new, were checked before.
 */
export function checkItems(
  points: ReadonlyMap<string, Contributed>,
  instances: ReadonlyMap<string, Instance>,
  isFresh: (plugin: string) => boolean,
): void {
  const validator = createValidator()
  for (const [id, { rules, owner }] of rulesIn(
    [...instances.values()].map(({ plugin }) => plugin),
  )) {
    const { items, plugins } = points.get(id) ?? { items: [], plugins: [] }
    const holders = new Map<unknown, string>()
    const asked = owner !== undefined && isFresh(owner)
    for (const [at, item] of items.entries()) {
      const plugin = plugins[at]!
      const why = asked || isFresh(plugin) ? misfit(item, rules, validator) : undefined
      if (why !== undefined)
        throw new Error(
          `What ${plugin} contributes to ${id.replace(':', ' ')} does not fit: ${why}.`.replace(
            '..',
            '.',
          ),
        )
      if (rules.unique === undefined) continue
      const value = (item as Fields)[rules.unique]
      const holder = holders.get(value)
      if (holder !== undefined)
        throw new Error(
          `The ${rules.unique} "${String(value)}" at ${id.replace(':', ' ')} is claimed by ` +
            `${holder} and ${plugin}.`,
        )
      holders.set(value, plugin)
    }
  }
}
