// The driver's connection, with one fault mended. A command that is written to a socket which has
// just closed waits for the socket's `drain` event. That event never comes, no time limit of the
// driver ends the wait, and the command's place in the pool is lost.
import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import { lazyRequire } from '../lazy-require.ts'

/** What is used of the driver's internal class (mongodb 7.9.0, lib/cmap/connection.js). */
type Internal = EventEmitter & {
  /** Why the connection ended; null while it stands. */
  readonly error: Error | null
  /** Resolves when the socket has taken the command. */
  writeCommand(command: object, options: object): Promise<void>
}
const { Connection } = lazyRequire('mongodb/lib/cmap/connection.js') as {
  readonly Connection: new (socket: Duplex, options: object) => Internal
}

/** Its commands end when it does: with the reason for which the driver closed it. */
export class DriverConnection extends Connection {
  override async writeCommand(command: object, options: object): Promise<void> {
    const { promise: closed, reject } = Promise.withResolvers<never>()
    const onClose = () => reject(this.error ?? new Error('The connection is closed.'))
    this.once('close', onClose)
    try {
      await Promise.race([super.writeCommand(command, options), closed])
    } finally {
      this.off('close', onClose)
    }
  }
}
