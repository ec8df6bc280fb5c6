// A type's declaration as it is read on a page: one member a line where it has comments, each
// comment above its member.
import {
  isTypeLiteralNode,
  type Node,
  type TypeAliasDeclaration,
  type TypeLiteralNode,
} from 'typescript/unstable/ast'
import { commentOf, textOf } from './source.ts'

const widthMax = 120

function wrapped(text: string, width: number): string[] {
  const lines = ['']
  for (const word of text.split(' '))
    lines.at(-1)!.length + word.length >= width
      ? lines.push(word)
      : lines.push(`${lines.pop()} ${word}`.trim())
  return lines
}
const commented = (text: string, indent: string): string => {
  if (text === '') return ''
  const lines = wrapped(text, widthMax - indent.length - 7)
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map(line => `${indent} * ${line}\n`).join('')}${indent} */\n`
}

/** Type literals that no other one of `node` surrounds. */
function literalsIn(node: Node): TypeLiteralNode[] {
  if (isTypeLiteralNode(node)) return [node]
  const found: TypeLiteralNode[] = []
  node.forEachChild(child => void found.push(...literalsIn(child)))
  return found
}
const spread = (literal: TypeLiteralNode, indent: string): string => {
  const text = textOf(literal)
  if (!text.includes('/**') && !text.includes('\n') && text.length < widthMax) return text
  const inner = `${indent}  `
  const members = literal.members.map(
    member => `${commented(commentOf(member).text, inner)}${inner}${render(member, inner)}\n`,
  )
  return `{\n${members.join('')}${indent}}`
}
function render(node: Node, indent = ''): string {
  const start = node.getStart()
  let text = ''
  let at = start
  for (const literal of literalsIn(node)) {
    text += textOf(node).slice(at - start, literal.getStart() - start)
    // A member of a union stands on a line of its own, further in.
    text += spread(literal, text.includes('\n') ? /\n( *).*$/.exec(text)![1]! : indent)
    at = literal.end
  }
  return (text + textOf(node).slice(at - start)).replace(/[;,]$/, '')
}

export const declarationOf = (type: TypeAliasDeclaration): string =>
  `${commented(commentOf(type).text, '')}${render(type).replace(/^export /, '')}`
