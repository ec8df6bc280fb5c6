// The programs of this repository as text, and what each of them imports.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const home = resolve(import.meta.dirname, '../..')
export const programs = globSync(
  '{kernel,ports,adapters,plugins,contracts,test}/**/*.{ts,mjs,js}',
  { cwd: home },
)
  .filter(file => !file.includes('node_modules'))
  .sort()
export const files = programs.filter(file => file.endsWith('.ts'))
export const isTest = (file: string) => /\.(?:test|proof)\.ts$/.test(file)
/** What is served: no tests, and nothing that only they use. */
export const sources = files.filter(file => !file.startsWith('test/') && !isTest(file))
export const textOf = (file: string) => readFileSync(join(home, file), 'utf8')
export const linesOf = (file: string) => textOf(file).split('\n')
export const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

/**
 * Every import of a file of this repository, as a path from its root. It may be of a value or of a
 * type, static or dynamic, on one line or several.
 */
export function importsOf(file: string): { line: number; target: string }[] {
  const text = textOf(file)
  const literal = /(?<![.\w])(?:from\b|import\b\s*\(?)\s*(['"])([#.][^'"\n]*)\1/g
  return [...text.matchAll(literal)].map(({ 0: whole, 2: name = '', index }) => {
    const target =
      name === '#kernel'
        ? 'kernel/index.ts'
        : name.startsWith('#')
          ? name.slice(1)
          : relative(home, resolve(home, dirname(file), name))
    return { line: lineAt(text, index + whole.length), target }
  })
}

/**
 * Nodes that reach each other, in groups; `next` names what a node leads to. Tarjan's algorithm:
 * Depth-First Search and Linear Graph Algorithms, SIAM Journal on Computing 1 (1972).
 */
export function circlesIn(
  nodes: readonly string[],
  next: (node: string) => readonly string[],
): string[][] {
  const numbers = new Map<string, number>()
  const lowest = new Map<string, number>()
  const path: string[] = []
  const circles: string[][] = []
  const visit = (node: string): void => {
    numbers.set(node, numbers.size)
    lowest.set(node, numbers.get(node)!)
    path.push(node)
    for (const one of next(node)) {
      if (!numbers.has(one)) visit(one)
      if (path.includes(one)) lowest.set(node, Math.min(lowest.get(node)!, lowest.get(one)!))
    }
    if (lowest.get(node) !== numbers.get(node)) return
    const circle = path.splice(path.indexOf(node))
    if (circle.length > 1 || next(node).includes(node)) circles.push(circle)
  }
  for (const node of nodes) if (!numbers.has(node)) visit(node)
  return circles
}
