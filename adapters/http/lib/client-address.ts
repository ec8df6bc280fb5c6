// The client's address of a request, for limits and records.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { normalAddress } from '#ports/address.ts'

/**
 * Returns the address that stands `hops` places from the right of X-Forwarded-For, else the peer's.
 */
export function createAddressOf(hops: number): (request: IncomingMessage) => string {
  const peers = new WeakMap<Socket, string>()
  const peerOf = (socket: Socket): string => {
    const peer = peers.get(socket) ?? normalAddress(socket.remoteAddress ?? '') ?? ''
    peers.set(socket, peer)
    return peer
  }
  if (hops === 0) return ({ socket }) => peerOf(socket)
  return ({ socket, headers }) => {
    const chain = String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)
    return normalAddress(chain.at(-hops) ?? '') ?? peerOf(socket)
  }
}
