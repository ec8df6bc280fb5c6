// docs/extension-points/: a page a token, one for definePlugin and one for adapters, and their
// index. Everything on them is read from the sources, or from the plugins as they are loaded.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  isTypeLiteralNode,
  isTypeReferenceNode,
  type Node,
  type TypeAliasDeclaration,
  type TypeLiteralNode,
} from 'typescript/unstable/ast'
import { faults } from '#contracts/faults.ts'
import { schemesOf } from '../../kernel/adapters.ts'
import type { Plugin } from '../../kernel/plugin.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { excerptOf } from './excerpt.ts'
import { declarationOf } from './render.ts'
import {
  commentOf,
  headOf,
  home,
  openSources,
  pathOf,
  textOf,
  type Kind,
  type Offered,
  type Sources,
  type Token,
} from './source.ts'

export const folder = 'docs/extension-points'
const made = '<!-- Made by `npm run docs` from the sources named below. Change those. -->\n'
const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`
const link = (path: string) => `[${path}](../../${path})`
const listed = (names: readonly string[]) =>
  names.length === 0 ? 'nobody here' : names.map(name => `\`${name}\``).join(', ')
const pageOf = ({ kind, name }: Pick<Token, 'kind' | 'name'>) => `${kind}-${name}.md`

/** The package's entry that has what `file` declares; fails where no partner could import it. */
function entryOf(file: string): string {
  const { name, exports } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
    name: string
    exports: Record<string, { default: string }>
  }
  const source = file.startsWith('kernel/') ? 'kernel/index.ts' : file
  const published = `./dist/${source.replace(/\.ts$/, '.js')}`
  for (const [entry, { default: target }] of Object.entries(exports)) {
    const [before = '', after] = target.split('*')
    if (target === published) return `${name}${entry.slice(1)}`
    if (after !== undefined && published.startsWith(before) && published.endsWith(after)) {
      const part = published.slice(before.length, published.length - after.length)
      return `${name}${entry.slice(1).replace('*', part)}`
    }
  }
  throw new Error(`No export of package.json leads to ${file}.`)
}

const takes = ({ exported, name }: Token) =>
  `// It arrives under the name that you choose.\nuses: { ${name}: ${exported} }`
const uses: Readonly<Record<Kind, (token: Token) => string>> = {
  point: ({ exported }) =>
    `// To add an item, made of the plugin's own deps and services:\ncontributes: ` +
    `[into(${exported}, deps => item)]\n// To read it: items({ orgId }) answers today's ` +
    `list for an organisation.\nuses: { items: ${exported} }`,
  service: takes,
  port: takes,
}
const words: Readonly<Record<Kind, string>> = {
  point: "A point: many contribute, and whoever reads it gets today's list",
  service: 'A service: one plugin provides it',
  port: 'A port: whoever uses it does not know what is behind it',
}

const exampleOf = (sources: Sources, where: string): string => {
  const { path, code } = excerptOf(sources, where)
  return `From ${link(path)}:\n\n${fenced(path.endsWith('.js') ? 'js' : 'ts', code)}`
}
const typesOf = (types: readonly TypeAliasDeclaration[]) =>
  types.map(type => fenced('ts', declarationOf(type))).join('\n')

type Served = readonly Plugin[]
const whoUses = (plugins: Served, { id }: Token) =>
  plugins
    .filter(({ uses: tokens }) => Object.values(tokens ?? {}).some(token => token.id === id))
    .map(({ name }) => name)
const whoGives = (plugins: Served, { id, kind }: Token) =>
  plugins
    .filter(({ contributes = [], provides = {} }) =>
      kind === 'point'
        ? contributes.some(({ point }) => point === id)
        : Object.values(provides).some(token => token.id === id),
    )
    .map(({ name }) => name)
const ownerOf = ({ file, name }: Token) => {
  if (file.startsWith('plugins/')) return `Offered by the plugin \`${file.split('/')[1]}\``
  return file.startsWith('kernel/')
    ? 'Offered by the kernel itself'
    : `Bound by \`${name.toUpperCase()}_URL\` to one of ${schemesOf(name, [])
        .map(scheme => `\`${scheme}\``)
        .join(', ')}, or to an adapter of your own`
}

function tokenPage(
  sources: Sources,
  plugins: Served,
  token: Token,
  others: ReadonlyMap<Node, Token>,
): string {
  const types = sources.typesFrom([token.type])
  const main = isTypeReferenceNode(token.type) ? types[0] : undefined
  const elsewhere = types.filter(type => type !== main && others.has(type))
  const own = types.filter(type => !elsewhere.includes(type))
  const adapters =
    token.kind === 'port' && token.file.startsWith('ports/')
      ? sources.typesIn(token.file).filter(type => !types.includes(type))
      : []
  const given = whoGives(plugins, token)
  return [
    `${made}# ${token.exported}\n`,
    `\`${token.id}\`, version ${token.version}. ${words[token.kind]}. ${ownerOf(token)}; ` +
      `declared in ${link(token.file)}.\n`,
    `${token.comment.text}\n`,
    ...(token.remote
      ? [
          'Whoever asks an item waits for its answer, so every method may answer with a ' +
            'promise. The plugin may run in a thread of its own.\n',
        ]
      : token.kind === 'point'
        ? [
            'Its items are asked and answer at once, in the process: a plugin in a thread ' +
              'of its own cannot contribute to it.\n',
          ]
        : []),
    ...(token.kind === 'port' && token.file.startsWith('ports/')
      ? [`${headOf(sources.file(token.file))}\n`]
      : []),
    fenced(
      'js',
      `import { ${token.exported} } from '${entryOf(token.file)}'\n\n${uses[token.kind](token)}`,
    ),
    `${
      token.kind === 'point'
        ? `Contributed to by ${listed(given)}; read by ` +
          `${token.file.startsWith('kernel/') ? 'the kernel' : listed(whoUses(plugins, token))}`
        : `${token.kind === 'service' ? `Provided by ${listed(given)}; u` : 'U'}sed by ` +
          `${listed(whoUses(plugins, token))}`
    }.\n`,
    `## Type\n`,
    typesOf(own),
    ...(elsewhere.length > 0
      ? [
          'It also names ' +
            `${elsewhere
              .map(
                type =>
                  `\`${type.name.text}\` ` +
                  `([${others.get(type)!.exported}](${pageOf(others.get(type)!)}))`,
              )
              .join(', ')}.\n`,
        ]
      : []),
    ...(adapters.length > 0
      ? [
          `## For whoever writes an adapter\n`,
          `The port's other types; [adapters](adapter.md) says where an adapter goes and ` +
            `how it is checked.\n`,
          typesOf(adapters),
        ]
      : []),
    `## Example\n`,
    ...token.comment.examples.map(where => exampleOf(sources, where)),
  ].join('\n')
}

const partnerPlugin = 'test/examples/hello-partner/plugin.js'
/** The shortest of the house's own uses of a field that says more than a name. */
function useOf(sources: Sources, plugins: Served, field: string): string | undefined {
  const found = plugins
    .filter(plugin => Object.hasOwn(plugin, field))
    .map(({ name }) => excerptOf(sources, `plugins/${name}/plugin.ts#${field}`))
    .filter(({ code }) => code.split('\n').length <= 12)
  const best = found.toSorted(
    (a, b) =>
      Number(a.code.length < 60) - Number(b.code.length < 60) || a.code.length - b.code.length,
  )[0]
  return best && `From ${link(best.path)}:\n\n${fenced('ts', best.code)}`
}
/** Of what must be unique in the whole house: the names that its own plugins have. */
const takenBy = (plugins: Served, field: string): string[] => {
  const names = (given: Plugin): string[] =>
    field === 'collections'
      ? (given.collections ?? []).map(({ name }) => name)
      : unique.includes(field)
        ? Object.keys(given[field as 'jobs'] ?? {})
        : []
  const rows = plugins.flatMap(plugin =>
    names(plugin).length > 0 ? [`- ${plugin.name}: ${listed(names(plugin))}`] : [],
  )
  return rows.length > 0 ? ['Names that are taken:\n', `${rows.join('\n')}\n`] : []
}
const unique = ['jobs', 'commands', 'emits']
const offer = ({ name, signature, comment }: Offered) =>
  `- \`${name}\`${comment.text ? `: ${comment.text}` : ''}\n\n  ` +
  `${fenced('ts', signature).trim().replaceAll('\n', '\n  ')}\n`

/** What a field is for, and an example of it unless the whole plugin above has one. */
function fieldSection(
  sources: Sources,
  plugins: Served,
  member: Node,
  shownAbove: string,
): string[] {
  const name = textOf((member as unknown as { name: Node }).name)
  const shown = new RegExp(`^  ${name}:|[ ,]${name}(?:,|:)`, 'm').test(
    shownAbove.slice(shownAbove.indexOf('definePlugin({')),
  )
  return [
    `### \`${name}\`\n`,
    `${commentOf(member).text}\n`,
    fenced('ts', textOf(member).replace(/^readonly /, '')),
    ...(shown ? [] : [useOf(sources, plugins, name) ?? 'No plugin of this repository has it.\n']),
    ...takenBy(plugins, name),
  ]
}

function pluginPage(sources: Sources, plugins: Served, tokens: readonly Token[]): string {
  const spec = sources.typeIn('kernel/plugin.ts', 'Spec')
  const literal = literalOf(spec.type)
  const whole = readFileSync(join(home, partnerPlugin), 'utf8')
  const offered = sources.offeredBy('kernel/index.ts')
  const { comment } = offered.find(({ name }) => name === 'definePlugin')!
  const kernels = offered.filter(({ name }) => !tokens.some(({ exported }) => exported === name))
  const rows = sources
    .offeredBy('contracts/contract.ts')
    .filter(({ name }) => !kernels.some(one => one.name === name))
  const known = new Set<Node>([spec])
  const given = ['PluginContext', 'JobCall'].map(name => sources.typeIn('kernel/plugin.ts', name))
  const call = ['Call', 'Operation'].map(name => sources.typeIn('contracts/contract.ts', name))
  const types = [...given, ...call].flatMap(type =>
    known.has(type) ? [] : [known.add(type) && type, ...sources.typesFrom([type], known)],
  )
  const rest = sources
    .typesFrom([spec.type], known)
    .filter(type => pathOf(type) !== 'ports/token.ts')
  return [
    `${made}# definePlugin\n`,
    `${comment.text} ` +
      `A file \`plugin.js\` (or what package.json names as \`main\`) has it as its default ` +
      `export; ${link('kernel/plugin.ts')} declares it.\n`,
    fenced('js', `import { definePlugin } from '${entryOf('kernel/plugin.ts')}'`),
    `A whole one, from ${link(partnerPlugin)}:\n`,
    fenced('js', whole.trimEnd()),
    `## Fields\n`,
    ...literal.members.flatMap(member => fieldSection(sources, plugins, member, whole)),
    `### \`routes\`\n`,
    "A handler for every row of the contract, under the row's key. A row without one is " +
      'refused, and in TypeScript does not compile. A handler is given one object: the deps ' +
      "of `uses`, the services, what is in `PluginContext`, and the request's values of `Call`.\n",
    `## What a handler is given\n`,
    typesOf(types),
    `## What the fields name\n`,
    typesOf(rest),
    `## What the package offers beside it\n`,
    `From \`${entryOf('kernel/index.ts')}\`:\n`,
    ...kernels.map(offer),
    `From \`${entryOf('contracts/contract.ts')}\`:\n`,
    ...rows.map(offer),
    `## Faults\n`,
    `\`throw fault(code, values)\` from \`${entryOf('contracts/faults.ts')}\` answers the ` +
      `status with the sentence, its \`{…}\` filled from the values. An operation that ` +
      `throws one beyond those that follow from its row names it in \`faults\`.\n`,
    `| code | status | sentence |\n|---|---|---|\n${Object.entries(faults)
      .map(
        ([code, [status, sentence]]) =>
          `| \`${code}\` | ${status} | ${sentence.replaceAll('|', '\\|')} |`,
      )
      .join('\n')}\n`,
  ].join('\n')
}
const literalOf = (node: Node): TypeLiteralNode => {
  const found = isTypeLiteralNode(node)
    ? node
    : node.forEachChild(child =>
        isTypeLiteralNode(child) && child.members.length > 1 ? child : undefined,
      )
  if (!found) throw new Error(`${pathOf(node)}: ${textOf(node).slice(0, 40)} names no members.`)
  return found
}

function adapterPage(sources: Sources, hidden: readonly string[]): string {
  const adapter = sources.typeIn('ports/adapter.ts', 'Adapter')
  const parrot = 'test/examples/hello-adapter/models/parrot.js'
  return [
    `${made}# Adapters\n`,
    `An adapter binds a port to some technology; the scheme of the port's URL ` +
      `(\`STORAGE_URL=sqlite:\`) names it. ${headOf(sources.file('ports/adapter.ts'))} ` +
      `Outside this repository it is \`<port>/<scheme>.js\` in a folder that ADAPTERS_DIR ` +
      `names, and \`adapters check <port> <url>\` tries it against the port's conformance ` +
      `kit.\n`,
    fenced('js', `import { defineAdapter } from '${entryOf('ports/adapter.ts')}'`),
    `## Type\n`,
    typesOf([adapter, ...sources.typesFrom([adapter.type], new Set([adapter]))]),
    `## Example\n`,
    exampleOf(sources, parrot),
    ...hidden.flatMap(file => [
      `## Port \`${file.slice('ports/'.length, -'.ts'.length)}\`\n`,
      `${headOf(sources.file(file))} Declared in ${link(file)}.\n`,
      typesOf(sources.typesIn(file)),
    ]),
  ].join('\n')
}

const indexPage = (groups: readonly (readonly [title: string, tokens: readonly Token[]])[]) =>
  [
    `${made}# Extension points\n`,
    'What a plugin can be, can add to, and can ask for; and where an adapter goes. [A ' +
      'plugin in five minutes](../a-plugin-in-five-minutes.md) is where to begin.\n',
    '- [definePlugin](plugin.md): the fields of a plugin, what its handlers are given, ' +
      'what the package offers beside it',
    '- [Adapters](adapter.md): another technology behind a port\n',
    ...groups.map(
      ([title, tokens]) =>
        `## ${title}\n\n| | id | import from | ` +
        `|\n|---|---|---|---|\n${tokens
          .map(
            token =>
              `| [${token.exported}](${pageOf(token)}) | \`${token.id}\` | ` +
              `\`${entryOf(token.file)}\` | ${token.comment.text.replaceAll('|', '\\|')} |`,
          )
          .join('\n')}\n`,
    ),
  ].join('\n')

/** File names below `folder` → what they hold. */
export async function extensionPages(): Promise<ReadonlyMap<string, string>> {
  const sources = openSources()
  const plugins = await loadPlugins()
  try {
    const files = [
      'kernel/plugin.ts',
      'kernel/kernel-ports.ts',
      ...sources.apis,
      ...sources.portFiles,
    ]
    const tokens = files.flatMap(sources.tokensIn)
    const of = (kind: Kind) =>
      tokens.filter(token => token.kind === kind).toSorted((a, b) => a.name.localeCompare(b.name))
    const others = new Map<Node, Token>(
      tokens.flatMap(token =>
        isTypeReferenceNode(token.type)
          ? [[sources.typesFrom([token.type])[0]!, token] as const]
          : [],
      ),
    )
    const hidden = sources.portFiles.filter(
      file =>
        !['ports/token.ts', 'ports/adapter.ts'].includes(file) &&
        !tokens.some(token => token.file === file),
    )
    return new Map([
      [
        'README.md',
        indexPage([
          ['Points', of('point')],
          ['Services', of('service')],
          ['Ports', of('port')],
        ]),
      ],
      ['plugin.md', pluginPage(sources, plugins, tokens)],
      ['adapter.md', adapterPage(sources, hidden)],
      ...tokens.map(token => [pageOf(token), tokenPage(sources, plugins, token, others)] as const),
    ])
  } finally {
    sources.close()
  }
}
