// Follows a guide as its reader would: every fenced block says in its info string what is done with
// it, so that nothing in it can stop being true unnoticed.
//   ```js file=blobs/folder.js the text is written there, below the folder in which the shell
//   stands
//   ```sh run typed into one shell, which keeps its folder and variables from block to block; it
//   must succeed
//   ```sh run=fails                 the same, and it must not succeed
//   ```sh serve=server until="…"    started beside the shell; the guide goes on when it has said so
//   ```sh stop=server               ended as by Ctrl-C (the text is for the reader)
//   ```text output what the block before has said: whole, where `…` stands for anything within a
//   line, or alone for any lines
//   ```text shown                   for the reader's eyes only
// A block that says none of these is an error, and so is a word that is none of them.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

export type Following = {
  /** Where the reader's shell stands at first. */
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /**
   * Text of the guide → what stands for it here (a tarball's path, a port); in commands, files and
   * outputs alike.
   */
  readonly replace?: Readonly<Record<string, string>>
  /** A block that takes longer has failed, in milliseconds. */
  readonly blockMsMax?: number
}
export type Block = {
  readonly line: number
  readonly words: Readonly<Record<string, string>>
  readonly text: string
}
export type Followed = Block & {
  /** What it said, both streams in their order. */ readonly said: string
}

const deeds = ['file', 'run', 'serve', 'stop', 'output', 'shown'] as const
const blockMsDefault = 60_000

/**
 * Every fenced block of a markdown text, also within a list. Throws where one does not say what is
 * done with it.
 */
export function blocksOf(markdown: string, name = 'the guide'): Block[] {
  const blocks: Block[] = []
  let open:
    | { line: number; info: string; fence: string; indent: number; text: string[] }
    | undefined
  for (const [i, line] of markdown.split('\n').entries()) {
    const [, indent = '', fence, info = ''] = /^( *)(`{3,})(.*)$/.exec(line) ?? []
    if (!open) {
      if (fence !== undefined) open = { line: i + 1, info, fence, indent: indent.length, text: [] }
    } else if (fence === open.fence && info.trim() === '') {
      const words = Object.fromEntries(
        [...open.info.replace(/^\s*\S+/, '').matchAll(/(\w+)(?:=(?:"([^"]*)"|(\S+)))?/g)].map(
          ([, key, quoted, plain]) => [key!, quoted ?? plain ?? ''],
        ),
      )
      const done = Object.keys(words).filter(word => word !== 'until')
      if (done.length !== 1 || !(deeds as readonly string[]).includes(done[0]!))
        throw new Error(
          `${name}:${open.line} a block says one thing of ${deeds.join(', ')}; this one ` +
            `says "${open.info}"`,
        )
      blocks.push({ line: open.line, words, text: open.text.map(one => `${one}\n`).join('') })
      open = undefined
    } else open.text.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)))
  }
  if (open) throw new Error(`${name}:${open.line} the block never ends`)
  return blocks
}

/** Does what was said look as the guide shows it? */
export function looksLike(said: string, shown: string): boolean {
  const lines = (text: string) =>
    text
      .trim()
      .split('\n')
      .map(line => line.trimEnd())
  const literally = (text: string) =>
    text
      .split('…')
      .map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')
  const pattern = lines(shown)
    .map(line => (line.trim() === '…' ? '(?:.*\n)*' : `${literally(line)}\n`))
    .join('')
  return new RegExp(`^${pattern}$`).test(`${lines(said).join('\n')}\n`)
}

/**
 * Does everything that the guide says, in its order; what it started has ended when this resolves
 * or rejects. Rejects with the line of the block that did not go as it says.
 */
export async function follow(
  markdownPath: string,
  { cwd, env = {}, replace = {}, blockMsMax = blockMsDefault }: Following,
): Promise<Followed[]> {
  const name = basename(markdownPath)
  const state = mkdtempSync(join(tmpdir(), 'guide-'))
  const memory = join(state, 'shell')
  const replaced = (text: string) =>
    Object.entries(replace).reduce((all, [from, to]) => all.replaceAll(from, to), text)
  const servers = new Map<string, ChildProcess>()
  const followed: Followed[] = []
  let folder = resolve(cwd)
  let last: { said: string } | undefined

  /**
   * One shell as far as its reader can tell: what it exported or set, and where it stood, is read
   * back before each block.
   */
  const start = (text: string) => {
    const script =
      `exec 2>&1\nset -a\n[ -f "${memory}" ] && . "${memory}"\ntrap 'export -p > ` +
      `"${memory}"; pwd > "${memory}.pwd"' EXIT\nset -e\n${text}`
    const child = spawn('sh', ['-c', script], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const heard = { said: '' }
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      heard.said += part
    })
    return { child, heard }
  }
  /** With everything that it started itself. */
  const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'close')
    const late = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 10_000)
    process.kill(-child.pid!, signal)
    await ended
    clearTimeout(late)
  }
  const inTime = async <T>(child: ChildProcess, work: Promise<T>): Promise<T> => {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => reject(new Error(`it took longer than ${blockMsMax} ms`)),
      blockMsMax,
    )
    return Promise.race([work, late])
      .catch(async (error: unknown) => {
        await end(child, 'SIGKILL')
        throw error
      })
      .finally(() => clearTimeout(timer))
  }
  const run = async (text: string, fails: boolean) => {
    const { child, heard } = start(text)
    last = heard
    const [code] = (await inTime(child, once(child, 'close'))) as [number | null]
    if ((code !== 0) !== fails) throw new Error(fails ? 'it succeeded' : `it ended with ${code}`)
    if (existsSync(`${memory}.pwd`)) folder = readFileSync(`${memory}.pwd`, 'utf8').trim()
  }
  const serve = async (text: string, server: string, until: string | undefined) => {
    if (!until) throw new Error('a server says until="…" what tells that it serves')
    // In a shell of its own, which leaves the reader's as it is.
    const { child, heard } = start(`trap - EXIT\n${text}`)
    last = heard
    servers.set(server, child)
    await inTime(
      child,
      new Promise<void>((served, failed) => {
        child.stdout!.on('data', () => heard.said.includes(replaced(until)) && served())
        child.once('close', code => failed(new Error(`it ended with ${code}`)))
      }),
    )
  }
  const act = async ({ words, text }: Block) => {
    if (words['file'] !== undefined) {
      const path = resolve(folder, replaced(words['file']))
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    } else if (words['run'] !== undefined) await run(text, words['run'] === 'fails')
    else if (words['serve'] !== undefined) await serve(text, words['serve'], words['until'])
    else if (words['stop'] !== undefined) {
      const server = servers.get(words['stop'])
      if (!server) throw new Error(`nothing called ${words['stop']} was started`)
      await end(server, 'SIGINT')
    } else if (words['output'] !== undefined && !looksLike(last?.said ?? '', text))
      throw new Error(`the guide shows\n${text}`)
  }
  try {
    for (const block of blocksOf(readFileSync(markdownPath, 'utf8'), name)) {
      const meant = { ...block, text: replaced(block.text) }
      await act(meant).catch((error: Error) => {
        throw new Error(`${name}:${block.line} ${error.message}\n--- said:\n${last?.said ?? ''}`, {
          cause: error,
        })
      })
      followed.push({ ...meant, said: last?.said ?? '' })
    }
    return followed
  } finally {
    for (const server of servers.values()) await end(server, 'SIGTERM')
    rmSync(state, { recursive: true, force: true })
  }
}
