// The page of definePlugin: its fields, what a handler is given, and what the package offers.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isTypeLiteralNode, type Node, type TypeLiteralNode } from 'typescript/unstable/ast'
import { faults } from '#contracts/faults.ts'
import type { Plugin } from '../../kernel/plugin.ts'
import { excerptOf } from './excerpt.ts'
import { entryOf, fenced, link, listed, made, typesOf, type Served } from './pieces.ts'
import {
  commentOf,
  home,
  pathOf,
  textOf,
  type Offered,
  type Sources,
  type Token,
} from './source.ts'

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

export function pluginPage(sources: Sources, plugins: Served, tokens: readonly Token[]): string {
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
