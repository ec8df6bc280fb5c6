// A way to a server that can be cut and mended, for what a client does while its server is away.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export async function proxyTo(host: string, port: number) {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    if (isCut) return void near.destroy()
    const far = connect(port, host)
    for (const [one, other] of [[near, far], [far, near]] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy()).on('close', () => { sockets.delete(one); other.destroy() }).pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as { port: number }).port, cut,
    mend: () => void (isCut = false),
    close: () => new Promise((done) => { cut(); server.close(done) }),
  }
}
