// Stops floods of requests. Node reads whatever a socket brings, request by request, before any
// other client has a turn. After a flood, the address is refused for a while.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { addressGroup, normalAddress } from '#ports/address.ts'
import type { Clock } from '#ports/clock.ts'

/** Milliseconds for which an address gets no connection. */
const refusedMs = 10_000
/** Addresses that are remembered; the one that was refused first is forgotten. */
const refusedMax = 10_000

type Parts = {
  readonly clock: Pick<Clock, 'monotonic'>
  /**
   * Whether a call is under way on the socket. Such a socket, perhaps with an event stream, stays
   * open.
   */
  readonly isBusy: (socket: Socket) => boolean
}

export function createFloods({ clock, isBusy }: Parts) {
  const open = new Map<string, Set<Socket>>()
  const refused = new Map<string, number>()
  const groupOf = ({ remoteAddress = '' }: Socket) =>
    addressGroup(normalAddress(remoteAddress) ?? remoteAddress)

  const isRefused = (group: string): boolean => {
    const until = refused.get(group)
    if (until === undefined) return false
    if (clock.monotonic() < until) return true
    refused.delete(group)
    return false
  }
  const refuse = (group: string) => {
    refused.delete(group)
    refused.set(group, clock.monotonic() + refusedMs)
    if (refused.size > refusedMax) refused.delete(refused.keys().next().value!)
  }
  const keep = (socket: Socket) => {
    const group = groupOf(socket)
    const sockets = open.get(group) ?? new Set()
    open.set(group, sockets.add(socket))
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0 && open.get(group) === sockets) open.delete(group)
    })
  }

  return {
    /** Watches a server's connections. `event` is the one after which requests can come. */
    watch(server: Server, event: 'connection' | 'secureConnection'): void {
      server.prependListener(
        'connection',
        (socket: Socket) => void (isRefused(groupOf(socket)) && socket.destroy()),
      )
      server.on(event, (socket: Socket) => void (socket.destroyed || keep(socket)))
    },
    /** Ends a connection that sent too much, and the idle connections of its address. */
    from(socket: Socket): void {
      const group = groupOf(socket)
      refuse(group)
      socket.destroy()
      for (const one of open.get(group) ?? []) if (!isBusy(one)) one.destroy()
    },
  }
}
