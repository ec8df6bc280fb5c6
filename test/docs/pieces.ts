// The pieces of pages: links, code, types, examples, and where a file is imported from.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TypeAliasDeclaration } from 'typescript/unstable/ast'
import type { Plugin } from '../../kernel/plugin.ts'
import { excerptOf } from './excerpt.ts'
import { declarationOf } from './render.ts'
import { home, type Sources, type Token } from './source.ts'

export const made = '<!-- Made by `npm run docs` from the sources named below. Change those. -->\n'
export const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`
export const link = (path: string) => `[${path}](../../${path})`
export const listed = (names: readonly string[]) =>
  names.length === 0 ? 'nobody here' : names.map(name => `\`${name}\``).join(', ')
export const pageOf = ({ kind, name }: Pick<Token, 'kind' | 'name'>) => `${kind}-${name}.md`

/** The package's entry that has what `file` declares; fails where no partner could import it. */
export function entryOf(file: string): string {
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

export const exampleOf = (sources: Sources, where: string): string => {
  const { path, code } = excerptOf(sources, where)
  return `From ${link(path)}:\n\n${fenced(path.endsWith('.js') ? 'js' : 'ts', code)}`
}
export const typesOf = (types: readonly TypeAliasDeclaration[]) =>
  types.map(type => fenced('ts', declarationOf(type))).join('\n')

export type Served = readonly Plugin[]
