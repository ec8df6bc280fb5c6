// The page of a token: what it is, who has to do with it, its types and an example.
import { isTypeReferenceNode, type Node } from 'typescript/unstable/ast'
import { schemesOf } from '../../kernel/adapters.ts'
import {
  entryOf,
  exampleOf,
  fenced,
  link,
  listed,
  made,
  pageOf,
  typesOf,
  type Served,
} from './pieces.ts'
import { headOf, type Kind, type Sources, type Token } from './source.ts'

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

export function tokenPage(
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
