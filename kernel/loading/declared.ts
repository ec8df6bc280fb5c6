// Checks what a plugin declares against what the kernel will do with it. A mistake shows when the
// plugin is loaded, not at the first call.
import type { TSchema } from 'typebox'
import type { Plugin } from '../plugin.ts'
import { createValidator, type Compile } from '../validation/validate.ts'

const name = /^[a-z][a-z0-9-]{0,79}$/
/** A route. `:` and `*` are not allowed, because a router gives them a meaning. */
const row = /^(?:GET|POST|PUT|PATCH|DELETE) (?:\/|(?:\/(?:[\w.~-]+|\{\w+\}))+)$/

const isFunction = (value: unknown) => typeof value === 'function'

/** Every function that the kernel will call, by its description. */
const callables = ({
  services = {},
  routes = {},
  jobs = {},
  commands = {},
  contributes = [],
  records,
  health,
  start,
}: Plugin): [what: string, value: unknown][] => [
  ...Object.entries(services).map(
    ([key, make]) => [`the service ${key}`, make] as [string, unknown],
  ),
  ...Object.entries(routes).map(
    ([key, handler]) => [`the handler of ${key}`, handler] as [string, unknown],
  ),
  ...Object.entries(jobs).map(
    ([key, job]) => [`run of the job ${key}`, job?.run] as [string, unknown],
  ),
  ...Object.entries(commands).map(
    ([key, command]) => [`run of the command "${key}"`, command?.run] as [string, unknown],
  ),
  ...contributes.map(
    ({ point, make }) => [`what makes an item of ${point}`, make] as [string, unknown],
  ),
  ...(records ? [['live of its records', records.live] as [string, unknown]] : []),
  ...(health === undefined ? [] : [['health', health] as [string, unknown]]),
  ...(start === undefined ? [] : [['start', start] as [string, unknown]]),
]
const schemas = ({
  config,
  commands = {},
  emits = {},
}: Plugin): [what: string, schema: TSchema][] => [
  ...(config ? [['its config', config] as [string, TSchema]] : []),
  ...Object.entries(commands).map(
    ([key, { options }]) => [`the options of the command "${key}"`, options] as [string, TSchema],
  ),
  ...Object.entries(emits).map(
    ([key, schema]) => [`the data of the event ${key}`, schema] as [string, TSchema],
  ),
]

/** The plugin. Throws a sentence that begins with its name when a declaration is wrong. */
export function checkDeclared(plugin: Plugin, compile: Compile = 'now'): Plugin {
  const refuse = (why: string, cause?: unknown) =>
    new Error(`${plugin.name} ${plugin.version} ${why}`, { cause })
  if (!name.test(plugin.name))
    throw refuse(
      'has a name that is not lower-case letters, digits and hyphens (80 at most, a letter first).',
    )
  const bad = Object.keys(plugin.contract ?? {}).find(key => !row.test(key))
  if (bad !== undefined)
    throw refuse(`declares ${bad}, whose path is not made of plain words and {parameters}.`)
  const whole = Object.entries(plugin.commands ?? {}).find(([, one]) => 'offline' in one)
  if (whole && plugin.may?.installation === undefined)
    throw refuse(
      `has the command "${whole[0]}", which works on the whole installation, and does not ` +
        "declare what for (may: { installation: '…' }).",
    )
  const missing = callables(plugin).find(([, value]) => !isFunction(value))
  if (missing) throw refuse(`needs a function as ${missing[0]}.`)
  const validator = createValidator({ compile })
  for (const [what, schema] of schemas(plugin))
    try {
      validator.check('options', schema)
    } catch (cause) {
      throw refuse(`has no valid schema for ${what}: ${(cause as Error).message}`, cause)
    }
  return plugin
}
