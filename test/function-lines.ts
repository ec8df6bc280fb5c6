// How long the functions of this repository are, by the parser of the TypeScript compiler.
import { join } from 'node:path'
import { isFunctionLikeDeclaration, type Node, type SourceFile } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'

export type FunctionLines = {
  readonly file: string
  /** Where it starts, from 1. */
  readonly line: number
  /** Its own name after those of what encloses it. One without a name has only theirs. */
  readonly name: string
  /** The lines it is written on. Each function inside it counts as one. */
  readonly lines: number
}

const ownName = (node: Node) => (node as { name?: { text?: string } }).name?.text

/** Adds the functions of one file to `found`. */
function collect(file: string, source: SourceFile, found: FunctionLines[]): void {
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line + 1
  /** Returns how many of the node's lines belong to the functions in it. */
  function visit(node: Node, enclosing: string): number {
    const name = [enclosing, ownName(node)].filter(Boolean).join('.')
    let foldedLines = 0
    node.forEachChild(child => {
      foldedLines += visit(child, name)
    })
    if (!isFunctionLikeDeclaration(node)) return foldedLines
    const line = lineOf(node.getStart())
    const lineBreaks = lineOf(node.end) - line
    found.push({ file, line, name, lines: lineBreaks + 1 - foldedLines })
    return lineBreaks
  }
  visit(source, '')
}

/** Every function in these files, which are paths from `home`. It parses, and checks no types. */
export function functionLinesOf(home: string, files: readonly string[]): FunctionLines[] {
  const config = join(home, 'tsconfig.function-lines.json')
  const options = { noResolve: true, noLib: true, types: [] }
  const api = new API({
    cwd: home,
    fs: {
      fileExists: path => path === config || undefined,
      readFile: path =>
        path === config ? JSON.stringify({ compilerOptions: options, files }) : undefined,
    },
  })
  try {
    const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects()
    const found: FunctionLines[] = []
    for (const file of files) {
      const source = project?.program.getSourceFile(join(home, file))
      if (!source) throw new Error(`The compiler did not read ${file}.`)
      collect(file, source, found)
    }
    return found
  } finally {
    api.close()
  }
}
