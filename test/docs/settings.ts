// docs/settings.md: every setting, as the schemas of the kernel and of the plugins declare it, and
// every option of an adapter's URL.
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import { ports, schemesOf, loadAdapter } from '../../kernel/adapters.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { helpOf, type SettingHelp } from '../../kernel/cli/settings-help.ts'

export const settingsFile = join('docs', 'settings.md')

const units: readonly (readonly [ending: RegExp, unit: string])[] = [
  [/_BYTES_PER_SECOND_MIN$/, 'bytes a second'],
  [/_PER_SECOND$/, 'per second'],
  [/_PER_MINUTE$/, 'per minute'],
  [/_PER_HOUR$/, 'per hour'],
  [/^LIMITS_.*_BURST$/, 'at once'],
  [/_?MS$/, 'ms'],
  [/_HOURS$/, 'hours'],
  [/_MB$/, 'MiB'],
  [/(^|_)BYTES_MAX(_PER_ORG)?$/, 'bytes'],
  [/_CHARS_(MAX|KEPT)$/, 'characters'],
]
const unitOf = (name: string) => units.find(([ending]) => ending.test(name.toUpperCase()))?.[1]

type Schema = TSchema & {
  readonly type?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly anyOf?: readonly { readonly const: string }[]
}
/** The unit where the name says one, else the type; then the bounds. */
function kindOf({ name, schema }: Pick<SettingHelp, 'name' | 'schema'>): string {
  const { type, anyOf, minimum, maximum, exclusiveMinimum } = schema as Schema
  if (anyOf) return anyOf.map(({ const: word }) => `\`${word}\``).join(', ')
  if (type === 'boolean') return '`true`, `false`'
  const kind = unitOf(name) ?? (type === 'string' ? 'text' : type)
  const bounds = [
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(minimum === undefined ? [] : [maximum === undefined ? `${minimum} or more` : minimum]),
    ...(maximum === undefined ? [] : [`to ${maximum}`]),
  ]
  return [kind, bounds.join(' ')].filter(part => part !== '').join(', ')
}

/** A word with a placeholder such as `<path>` is set as code, so that nobody reads it as HTML. */
const escaped = (text: string) =>
  text
    .replaceAll('|', '\\|')
    .split(/(`[^`]*`)/)
    .map((part, at) =>
      at % 2 === 1 ? part : part.replace(/[^\s(]*<[^>]+>(?:[^\s),;]*[^\s),;.])?/g, '`$&`'),
    )
    .join('')
const code = (text: string) => (text === '' ? '–' : `\`${text}\``)
const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map(row).join('')

function settingsTables(settings: readonly SettingHelp[]): string[] {
  const groups = Map.groupBy(settings, ({ plugin }) => plugin)
  return [...groups].flatMap(([plugin, rows]) => [
    plugin === undefined ? '## The kernel\n' : `## The plugin \`${plugin}\`\n`,
    table(
      ['setting', 'default', 'unit or type', 'meaning'],
      rows.map(setting => [
        `\`${setting.name}\``,
        code(setting.fallback),
        kindOf(setting),
        escaped(setting.about),
      ]),
    ),
  ])
}

/** An option's text ends with "; default <value>." where it has a default. */
function optionRow([name, about]: readonly [name: string, about: string]): string[] {
  const [, meaning = about, fallback = '–'] = /^(.*); default:? (.*)\.$/.exec(about) ?? []
  if (/\bdefault\b/i.test(meaning))
    throw new Error(`The option ${name} must end with "; default <value>.": ${about}`)
  const sentence = `${escaped(meaning.replace(/\.$/, ''))}.`
  return [`\`${name}\``, escaped(fallback), unitOf(name) ?? '–', sentence]
}

async function optionTables(): Promise<string[]> {
  const offered = await Promise.all(
    ports.flatMap(port =>
      schemesOf(port, []).map(async scheme => {
        const setting = `${port.toUpperCase()}_URL`
        const { adapter } = await loadAdapter(port, setting, `${scheme}?`, [])
        return { title: `\`${setting}=${scheme}\``, options: adapter.options ?? {} }
      }),
    ),
  )
  const withOptions = offered.filter(({ options }) => Object.keys(options).length > 0)
  const alike = Map.groupBy(withOptions, ({ options }) => JSON.stringify(options))
  return [...alike.values()].flatMap(group => [
    `### ${group.map(({ title }) => title).join(', ')}\n`,
    table(
      ['option', 'default', 'unit', 'meaning'],
      Object.entries(group[0]!.options).map(optionRow),
    ),
  ])
}

export const settingsPage = async (): Promise<string> =>
  [
    '<!-- Made by `npm run docs` from the schemas of the settings. Change those. -->\n' +
      '# Settings\n',
    'Every setting is an environment variable. `<NAME>_FILE` names a file that holds the value ' +
      'instead. `npm start -- --check` tries all of them. [Operations](../OPERATIONS.md) says ' +
      'when to change which.\n',
    ...settingsTables(helpOf(await loadPlugins())),
    "## Options of adapters' URLs\n",
    "An option is a query parameter of a port's URL, such as `STORAGE_URL=sqlite:?bytes_max=0`. " +
      'An unknown option is refused at the start.\n',
    ...(await optionTables()),
  ].join('\n')
