// Reads tokens, types and their comments out of the sources, with the TypeScript compiler.
import { globSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import {
  isArrowFunction,
  isCallExpression,
  isIdentifier,
  isStringLiteral,
  isTypeAliasDeclaration,
  isTypeReferenceNode,
  isVariableStatement,
  SyntaxKind,
  type Node,
  type SourceFile,
  type TypeAliasDeclaration,
  type VariableDeclaration,
} from 'typescript/unstable/ast'
import { API, SymbolFlags, type Symbol } from 'typescript/unstable/sync'

export const home = resolve(import.meta.dirname, '../..')

/**
 * What stands in front of a declaration: its text, and the files or parts of files that it names by
 * `@example`.
 */
export type Comment = { readonly text: string; readonly examples: readonly string[] }
export type Kind = 'point' | 'service' | 'port'
export type Token = {
  readonly kind: Kind
  readonly name: string
  readonly id: string
  readonly version: string
  /** Of a point: its items may live in another thread. */
  readonly remote: boolean
  readonly exported: string
  readonly file: string
  readonly comment: Comment
  /** What it carries. */
  readonly type: Node
}
/** A function or value that a package entry offers. */
export type Offered = {
  readonly name: string
  readonly file: string
  readonly comment: Comment
  readonly signature: string
}

export const fileOf = (node: Node): SourceFile => {
  let at = node
  while (at.kind !== SyntaxKind.SourceFile) at = at.parent
  return at as SourceFile
}
export const textOf = (node: Node): string => fileOf(node).text.slice(node.getStart(), node.end)
export const pathOf = (node: Node): string => relative(home, fileOf(node).fileName)

/** The last comment in front of it that is meant for readers. */
export function commentOf(node: Node): Comment {
  const before = fileOf(node).text.slice(node.pos, node.getStart())
  const [, inner = ''] = [...before.matchAll(/\/\*\*([\s\S]*?)\*\//g)].at(-1) ?? []
  const text = inner
    .split('\n')
    .map(line => line.replace(/^\s*\*? ?/, '').trim())
    .filter(Boolean)
    .join(' ')
  const example = /@example (\S+)/g
  return {
    text: text.replace(example, '').trim(),
    examples: [...text.matchAll(example)].map(([, path]) => path!),
  }
}
/** The comment at the head of a file: what it is for. */
export const headOf = (file: SourceFile): string => {
  const lines = file.text.split('\n')
  return lines
    .slice(
      0,
      lines.findIndex(line => !line.startsWith('//')),
    )
    .map(line => line.slice(3))
    .join(' ')
}
export const isExported = (node: Node): boolean =>
  ((node as { modifiers?: readonly Node[] }).modifiers ?? []).some(
    ({ kind }) => kind === SyntaxKind.ExportKeyword,
  )

const kinds: readonly string[] = ['point', 'service', 'port'] satisfies Kind[]
const declarationsIn = (file: SourceFile) =>
  file.statements
    .filter(isVariableStatement)
    .flatMap(statement =>
      statement.declarationList.declarations.map(declaration => ({ statement, declaration })),
    )

export function openSources() {
  const api = new API({ cwd: home })
  const [project] = api
    .updateSnapshot({ openProjects: [join(home, 'tsconfig.json')] })
    .getProjects()
  if (!project) throw new Error('tsconfig.json describes no project.')
  const { program, checker } = project

  const file = (path: string): SourceFile => {
    const found = program.getSourceFile(join(home, path))
    if (!found) throw new Error(`${path} is not part of the project.`)
    return found
  }
  const declared = (symbol: Symbol | undefined): Node | undefined => {
    const target =
      symbol && symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    return target?.declarations[0]?.resolve(project)
  }
  /** `export const X = point<T>('x')`, and so on. */
  const tokensIn = (path: string): Token[] =>
    declarationsIn(file(path)).flatMap(({ statement, declaration: { name, initializer } }) => {
      if (
        !isExported(statement) ||
        !initializer ||
        !isCallExpression(initializer) ||
        !isIdentifier(initializer.expression) ||
        !kinds.includes(initializer.expression.text)
      )
        return []
      const kind = initializer.expression.text as Kind
      const [given, options] = initializer.arguments
      const type = initializer.typeArguments?.[0]
      const said = options ? textOf(options) : ''
      if (!given || !isStringLiteral(given) || !type)
        throw new Error(`${path}: ${textOf(name)} does not name itself and its type.`)
      return [
        {
          kind,
          name: given.text,
          id: `${kind}:${given.text}`,
          version: /'(\d+\.\d+\.\d+)'/.exec(said)?.[1] ?? '1.0.0',
          remote: /\bremote: true\b/.test(said),
          exported: textOf(name),
          file: path,
          comment: commentOf(statement),
          type,
        },
      ]
    })
  /**
   * The exported types of this repository that `from` names, and those that they name, each once,
   * in the order in which they are met.
   */
  const typesFrom = (from: readonly Node[], known = new Set<Node>()): TypeAliasDeclaration[] =>
    from.flatMap(root => {
      const found: TypeAliasDeclaration[] = []
      const visit = (node: Node): void => {
        if (isTypeReferenceNode(node)) {
          const target = declared(checker.getSymbolAtLocation(node.typeName))
          if (
            target &&
            isTypeAliasDeclaration(target) &&
            isExported(target) &&
            !known.has(target) &&
            !pathOf(target).includes('node_modules')
          ) {
            known.add(target)
            found.push(target)
          }
        }
        node.forEachChild(visit)
      }
      visit(root)
      return [...found, ...typesFrom(found, known)]
    })
  const typesIn = (path: string): TypeAliasDeclaration[] =>
    file(path).statements.filter(isTypeAliasDeclaration).filter(isExported)
  const typeIn = (path: string, name: string): TypeAliasDeclaration => {
    const found = typesIn(path).find(one => one.name.text === name)
    if (!found) throw new Error(`${path} has no type ${name}.`)
    return found
  }
  /** How it is called, without what it does. */
  const signatureOf = ({ name, type, initializer }: VariableDeclaration): string => {
    if (initializer && isArrowFunction(initializer)) {
      const [start, end] = [initializer, initializer.equalsGreaterThanToken].map(node =>
        node.getStart(),
      )
      return `${textOf(name)}${fileOf(name).text.slice(start, end).trim()}`
    }
    return `${textOf(name)}${type ? `: ${textOf(type)}` : ''}`
  }
  /** Functions and values among the exports of a file, wherever they are declared. */
  const offeredBy = (path: string): Offered[] => {
    const module = checker.getSymbolAtLocation(file(path))
    return (module ? checker.getExportsOfModule(module) : []).flatMap(symbol => {
      const found = declared(symbol)
      if (!found || isTypeAliasDeclaration(found)) return []
      const statement = found.kind === SyntaxKind.VariableDeclaration ? found.parent.parent : found
      const signature =
        found.kind === SyntaxKind.VariableDeclaration
          ? signatureOf(found as VariableDeclaration)
          : textOf(found).split('{\n')[0]!.replace('export function ', '').trim()
      return [{ name: symbol.name, file: pathOf(found), comment: commentOf(statement), signature }]
    })
  }
  return {
    file,
    tokensIn,
    typesFrom,
    typesIn,
    typeIn,
    offeredBy,
    declared,
    apis: globSync('plugins/*/api.ts', { cwd: home }).sort(),
    portFiles: globSync('ports/*.ts', { cwd: home }).sort(),
    close: () => api.close(),
  }
}
export type Sources = ReturnType<typeof openSources>
