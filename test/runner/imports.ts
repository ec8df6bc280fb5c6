// The imports of a source file, as the text tells them.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

export type Import = { readonly line: number; readonly target: string }

export const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

/**
 * Every import of a file of this repository, as a path from its root. It may be of a value or of a
 * type, static or dynamic, on one line or several.
 */
export function importsOf(home: string, file: string): Import[] {
  const path = join(home, file)
  if (!existsSync(path) || !/\.(?:ts|mjs)$/.test(file)) return []
  const text = readFileSync(path, 'utf8')
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
