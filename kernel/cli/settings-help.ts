// Every setting with its default and its meaning, for `--help` and for docs/settings.md.
import { Type as t, type TSchema } from 'typebox'
import type { Plugin } from '../plugin.ts'
import { KernelSettings } from '../settings/kernel-settings.ts'
import { envName, propertiesOf, ratesOf } from '../settings/settings.ts'

export type SettingHelp = {
  readonly name: string
  readonly fallback: string
  readonly about: string
  /** The plugin that declares it; undefined: the kernel. */
  readonly plugin?: string
  readonly schema: TSchema
}
type Property = readonly [
  name: string,
  schema: TSchema & { default?: unknown; description?: string },
]

const helpFor = ([name, schema]: Property): SettingHelp => ({
  name,
  fallback: schema.default === undefined ? '' : String(schema.default),
  about: schema.description ?? '',
  schema,
})

function aboutRate(plugin: Plugin, { name, part, value }: ReturnType<typeof ratesOf>[number]) {
  const rate = plugin.limits![name]!
  const what = rate.about ?? `Rate limit "${name}" of the ${plugin.name} plugin`
  if (part === 'burst') return `${what}: how many at once.`
  if ('perMs' in rate) return `${what}: how many within ${rate.perMs / 1000} s.`
  const seconds = Number((1 / value).toPrecision(3))
  const usual = seconds > 1 ? `one every ${seconds} s` : `${value} a second`
  return `${what}: how many a second in the long run. The default is ${usual}.`
}
const rateHelp = (plugin: Plugin): SettingHelp[] =>
  ratesOf(plugin).map(row => ({
    name: row.setting,
    fallback: String(Number(row.value.toPrecision(3))),
    about: aboutRate(plugin, row),
    plugin: plugin.name,
    schema: t.Number({ exclusiveMinimum: 0 }),
  }))

const configHelp = (plugin: Plugin): SettingHelp[] =>
  propertiesOf(plugin.config).map(([property, schema]) => ({
    ...helpFor([envName(plugin.name, property, schema), schema]),
    plugin: plugin.name,
  }))

/** Every setting that there is, each once. */
export const helpOf = (plugins: readonly Plugin[]): SettingHelp[] =>
  [
    ...propertiesOf(KernelSettings).map(helpFor),
    ...plugins.flatMap(configHelp),
    ...plugins.flatMap(rateHelp),
  ].filter(({ name }, at, all) => all.findIndex(row => row.name === name) === at)

export const helpLine = ({ name, fallback, about }: SettingHelp): string =>
  `${name.padEnd(32)} ${about}${fallback ? ` [${fallback}]` : ''}`
