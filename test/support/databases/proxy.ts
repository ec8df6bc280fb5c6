// A TCP proxy between a test and what it talks to: spreads connections over several servers as a
// balancer does, and can cut the network.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export type Proxy = {
  readonly port: number
  /** Connections break, and new ones are refused. */
  refuse(): void
  /**
   * From now on nothing passes, on connections that are open neither: packets vanish, and nobody is
   * told.
   */
  cut(): void
  /**
   * New connections pass again. What was cut is closed, as a peer does that has lost the state of a
   * connection.
   */
  heal(): void
  close(): Promise<void>
}

/** Connections go to the ports in turn; one that refuses is passed over. */
export async function startProxy(
  ports: () => readonly number[],
  host = '127.0.0.1',
): Promise<Proxy> {
  const open = new Set<Socket>()
  let next = 0
  let isCut = false
  let isClosed = false
  const keep = (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
  }
  const join = (client: Socket, server: Socket) => {
    client.pipe(server)
    server.pipe(client)
    client.on('close', () => server.destroy())
    server.on('close', () => client.destroy())
    if (isCut) for (const socket of [client, server]) socket.pause()
  }
  const reach = (client: Socket, tried = 0): void => {
    const all = ports()
    if (client.destroyed || tried >= all.length) return void client.destroy()
    const server = connect({ port: all[next++ % all.length]!, host })
    server
      .once('connect', () => {
        server.removeAllListeners('error')
        keep(server)
        join(client, server)
      })
      .once('error', () => reach(client, tried + 1))
  }
  const listener = createServer(client => {
    if (isClosed) return void client.destroy()
    keep(client)
    // A connection into a network that is cut is neither taken nor refused.
    if (!isCut) reach(client)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const drop = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (listener.address() as { port: number }).port,
    refuse() {
      isClosed = true
      drop()
    },
    cut() {
      isCut = true
      for (const socket of open) {
        socket.unpipe()
        socket.pause()
      }
    },
    heal() {
      isCut = isClosed = false
      drop()
    },
    async close() {
      drop()
      listener.close()
      await once(listener, 'close')
    },
  }
}
