// docs/extension-points/: a page a token, one for definePlugin and one for adapters, and their
// index. Everything on them is read from the sources, or from the plugins as they are loaded.
import { isTypeReferenceNode, type Node } from 'typescript/unstable/ast'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { entryOf, exampleOf, fenced, link, made, pageOf, typesOf } from './pieces.ts'
import { pluginPage } from './plugin-page.ts'
import { headOf, openSources, type Kind, type Sources, type Token } from './source.ts'
import { tokenPage } from './token-page.ts'

export const folder = 'docs/extension-points'
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
