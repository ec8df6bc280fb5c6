// Examples come out of files that run: a whole one, or the part of it that has a name.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  isCallExpression,
  isFunctionDeclaration,
  isMethodDeclaration,
  isPropertyAssignment,
  isVariableDeclaration,
  isVariableStatement,
  type Node,
} from 'typescript/unstable/ast'
import { fileOf, home, pathOf, textOf, type Sources } from './source.ts'

const linesMax = 120

const namedIn = (root: Node, name: string): Node | undefined => {
  const visit = (node: Node): Node | undefined => {
    const called =
      isFunctionDeclaration(node) ||
      isMethodDeclaration(node) ||
      isPropertyAssignment(node) ||
      isVariableDeclaration(node)
        ? node.name
        : undefined
    return called && textOf(called).replace(/^'|'$/g, '') === name ? node : node.forEachChild(visit)
  }
  // A field of the plugin before anything else that has the name.
  const plugin = root.forEachChild(function find(node: Node): Node | undefined {
    return isCallExpression(node) && textOf(node.expression) === 'definePlugin'
      ? node.arguments[0]
      : node.forEachChild(find)
  })
  const found =
    plugin?.forEachChild(field =>
      isPropertyAssignment(field) && textOf(field.name) === name ? field : undefined,
    ) ?? visit(root)
  // `const x = …` is the whole statement.
  return found?.parent?.parent && isVariableStatement(found.parent.parent)
    ? found.parent.parent
    : found
}

const outdented = (node: Node): string => {
  const [indent] = /[ ]*$/.exec(fileOf(node).text.slice(0, node.getStart()))!
  return textOf(node).replaceAll(`\n${indent}`, '\n')
}

/** `path`, or `path#name` of a declaration or of a property in it; fails where there is none. */
export function excerptOf(
  sources: Sources,
  where: string,
): { readonly path: string; readonly code: string } {
  const [path = '', name] = where.split('#')
  const whole = readFileSync(join(home, path), 'utf8').trimEnd()
  const node = name === undefined ? undefined : namedIn(sources.file(path), name)
  if (name !== undefined && !node) throw new Error(`${path} has nothing named ${name}.`)
  const code = node ? `${outdented(node)}${isPropertyAssignment(node) ? ',' : ''}` : whole
  if (code.split('\n').length > linesMax)
    throw new Error(`${where} is longer than ${linesMax} lines: no short example.`)
  return { path: node ? pathOf(node) : path, code }
}
