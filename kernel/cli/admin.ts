// The admin socket runs commands inside the living server, one JSON line each way. Whoever can open
// DATA_DIR can give commands.
import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fault, isFault } from '#contracts/faults.ts'
import type { RunnableCommand } from '../commands.ts'
import { requirePrivate } from './private.ts'
import { createValidator } from '../validation/validate.ts'

export type Commands = ReadonlyMap<string, RunnableCommand>
export type Answer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: string }
/** Characters of a socket's path; the system allows 107 bytes (unix(7)). */
const socketPathMax = 100
const lineMax = 1 << 20

export function socketPath(dataDir: string): string {
  const inside = join(resolve(dataDir), 'admin.sock')
  return inside.length <= socketPathMax
    ? inside
    : join(
        tmpdir(),
        `agent-platform-${createHash('sha256').update(inside).digest('hex').slice(0, 16)}`,
        'admin.sock',
      )
}

/**
 * Checks the options and runs the command. A fault is reported as it is, any other error without
 * its details.
 */
export async function runCommand(
  commands: Commands,
  name: string,
  options: unknown,
): Promise<Answer> {
  try {
    const command = commands.get(name)
    if (!command)
      return {
        ok: false,
        error:
          `There is no command "${name}". There are: ` +
          `${[...commands.keys()].sort().join(', ')}.`,
      }
    return {
      ok: true,
      result: await command.run(createValidator().check('options', command.options)(options)),
    }
  } catch (error) {
    return {
      ok: false,
      error: isFault(error) || error instanceof Error ? error.message : 'It failed.',
    }
  }
}

/**
 * Reads one line from a socket and answers it. A line that is too long or not JSON is refused like
 * any other mistake.
 */
function converse(socket: Socket, commands: () => Commands): void {
  let heard = ''
  const answer = (words: Answer) => socket.end(`${JSON.stringify(words)}\n`)
  const hear = (part: string) => {
    heard += part
    const end = heard.indexOf('\n')
    if (end < 0 && heard.length <= lineMax) return
    socket.off('data', hear).resume()
    try {
      if (end < 0 || end > lineMax) throw new Error(`A command has at most ${lineMax} characters.`)
      const { command, options } = Object(JSON.parse(heard.slice(0, end))) as {
        command?: unknown
        options?: unknown
      }
      void runCommand(commands(), String(command), options ?? {}).then(answer)
    } catch (error) {
      answer({ ok: false, error: (error as Error).message })
    }
  }
  socket.setEncoding('utf8').on('data', hear)
}

export async function serveAdmin(
  dataDir: string,
  commands: () => Commands,
): Promise<() => Promise<void>> {
  // A storage that can be shared has no lock, so the socket shows whether a server runs.
  if (await askServer(dataDir, 'help', {}))
    throw fault('INVALID_FIELD', {
      field: 'DATA_DIR',
      why: 'another server runs on it; each has a folder of its own',
    })
  const path = socketPath(dataDir)
  const open = new Set<Socket>()
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  requirePrivate(path, dataDir)
  rmSync(path, { force: true })
  const server = createServer(socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => socket.destroy())
    converse(socket, commands)
  })
  // The listener stays: a later error affects one connection and must not end the process.
  await new Promise<void>((done, failed) => server.on('error', failed).listen(path, done))
  chmodSync(path, 0o600)
  return async () => {
    for (const socket of open) socket.destroy()
    await new Promise(done => server.close(done))
    rmSync(path, { force: true })
  }
}

/** Undefined when no server listens there. INVALID_FIELD where another user could listen. */
export const askServer = (
  dataDir: string,
  command: string,
  options: unknown,
): Promise<Answer | undefined> =>
  new Promise((done, failed) => {
    const path = socketPath(dataDir)
    // Without a socket file, no other process can pose as the server.
    if (!lstatSync(path, { throwIfNoEntry: false })) return done(undefined)
    requirePrivate(path, dataDir)
    const socket = createConnection(path)
    let heard = ''
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' || error.code === 'ECONNREFUSED' ? done(undefined) : failed(error),
    )
    socket.once('connect', () => socket.write(`${JSON.stringify({ command, options })}\n`))
    socket.on('data', part => {
      heard += part.toString('utf8')
    })
    socket.once('end', () =>
      done(
        heard
          ? (JSON.parse(heard) as Answer)
          : { ok: false, error: 'The server ended the connection without an answer.' },
      ),
    )
  })
