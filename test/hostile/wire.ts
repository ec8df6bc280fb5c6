// Bytes to a server and whatever comes back: a client without manners.
import { connect } from 'node:net'

export type Heard = {
  readonly status: number | 'close'
  readonly head: string
  readonly body: string
  readonly bytes: number
}

/**
 * What the server said until it, or we, hung up. Rejects when the connection still stands after
 * `msMax`.
 */
export function say(
  port: number,
  pieces: readonly (string | Buffer)[],
  then?: 'hang up' | 'reset',
  msMax = 10_000,
): Promise<Heard> {
  return new Promise((done, failed) => {
    const socket = connect(port, '127.0.0.1')
    const parts: Buffer[] = []
    const late = setTimeout(() => {
      failed(
        new Error(
          `The connection still stands after ${msMax} ms; it said: ` +
            `${Buffer.concat(parts).toString('latin1').slice(0, 300)}`,
        ),
      )
      socket.destroy()
    }, msMax)
    const told = () => {
      clearTimeout(late)
      done(heardOf(Buffer.concat(parts)))
    }
    socket
      .on('data', part => parts.push(part))
      .on('error', () => undefined)
      .on('close', told)
    socket.on(
      'connect',
      () =>
        void (async () => {
          for (const [i, piece] of pieces.entries()) {
            if (i > 0) await new Promise(soon => setTimeout(soon, 2))
            if (socket.writable) socket.write(piece)
          }
          if (then === 'hang up') socket.end()
          if (then === 'reset') setImmediate(() => socket.resetAndDestroy())
        })(),
    )
  })
}

function heardOf(all: Buffer): Heard {
  const text = all.toString('latin1')
  const at = text.indexOf('\r\n\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]
  return {
    status: status === undefined ? 'close' : Number(status),
    head: at < 0 ? text : text.slice(0, at),
    body: at < 0 ? '' : all.subarray(at + 4).toString('utf8'),
    bytes: all.length,
  }
}

/** A header of an answer, in lower case. */
export const headerOf = ({ head }: Heard, name: string): string | undefined =>
  head
    .split('\r\n')
    .find(line => line.toLowerCase().startsWith(`${name}: `))
    ?.slice(name.length + 2)
