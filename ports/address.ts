// Client addresses as limits and records use them. Each address has one spelling, and one network
// counts as one client.
import { isIPv4, isIPv6 } from 'node:net'

/** Shortens IPv6 by the URL parser (RFC 5952), and turns an IPv4-mapped address into plain IPv4. */
function shortForm(address: string): string {
  const short = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short)
  if (!mapped) return short
  const [high, low] = [Number.parseInt(mapped[1]!, 16), Number.parseInt(mapped[2]!, 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/**
 * The address in its one spelling, without port, brackets and zone. Undefined when the text is not
 * an address.
 */
export function normalAddress(text: string): string | undefined {
  const bracketed = /^\[([0-9A-Fa-f:.]{2,45})(?:%[\w.-]{1,32})?\](?::\d{1,5})?$/.exec(text)?.[1]
  const bare = bracketed ?? text.split('%', 1)[0]!
  if (isIPv6(bare)) return shortForm(bare)
  const plain = /^(\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?$/.exec(text)?.[1]
  return plain !== undefined && isIPv4(plain) ? plain : undefined
}

/**
 * The network that a limit by address counts. It is an IPv4 address, or the /64 network of an IPv6
 * address: one subscriber has all of a /64 (RFC 6177).
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address
  const [front = '', back] = address.split('::')
  const left = front === '' ? [] : front.split(':')
  const right = back ? back.split(':') : []
  const groups =
    back === undefined
      ? left
      : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right]
  return `${groups
    .slice(0, 4)
    .map(group => group.replace(/^0{1,3}/, ''))
    .join(':')}::/64`
}
