// Checks the operator's token in constant time, by digests of equal length.
import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** `authorization`: the whole header. Nobody is the operator where no token is set. */
export function isToken(authorization: string | undefined, token: string | undefined): boolean {
  const given = /^Bearer (\S{1,1000})$/i.exec(authorization ?? '')?.[1]
  return token !== undefined && given !== undefined && timingSafeEqual(digest(given), digest(token))
}
