// Who is counted when clients are counted by their address.
import { isIPv6 } from 'node:net'

/** The eight groups of an IPv6 address, `::` filled in. */
function groupsOf(address: string): string[] {
  const [head = '', tail] = address.split('::')
  const left = head.split(':').filter(Boolean), right = (tail ?? '').split(':').filter(Boolean)
  const missing = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array.from({ length: missing }, () => '0'), ...right]
}

/** The network for which an address counts in limits: an IPv4 address alone, of IPv6 the first 64 bits,
 *  since one subscriber has at least that many addresses (RFC 6177). Other texts count as they are. */
export function networkOf(address: string): string {
  const bare = address.split('%', 1)[0]!.toLowerCase()
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(bare)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(bare)) return bare
  return `${groupsOf(bare).slice(0, 4).map(group => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
