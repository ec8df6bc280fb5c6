// UUIDs of version 7 (RFC 9562, section 5.7), monotone by the counter of section 6.2, method 1.

const poolBytes = 4096
const tailBytes = 8
const counterMax = 0xfff

/**
 * An id costs well under a microsecond. Random bytes are drawn in blocks, and the digits of the
 * time are reused within a millisecond.
 */
export function uuids({
  now,
  randomBytes,
}: {
  now: () => number
  randomBytes: (count: number) => Uint8Array
}): (after?: string) => string {
  let pool = Buffer.alloc(0)
  let at = 0
  let time = -1
  let counter = 0
  let head = ''
  const begin = (ms: number, tail: Buffer): void => {
    time = ms
    // The counter starts in its lower half. A millisecond then has room for 2,048 ids before it
    // borrows from the next.
    counter = ((tail[at + 1]! << 8) | tail[at + 2]!) & 0x7ff
    const digits = ms.toString(16).padStart(12, '0')
    head = `${digits.slice(0, 8)}-${digits.slice(8)}-7`
  }
  const tailNow = (): string => {
    if (at + tailBytes > pool.length) {
      pool = Buffer.from(randomBytes(poolBytes))
      at = 0
    }
    const ms = now()
    if (ms > time) begin(ms, pool)
    else if (++counter > counterMax) begin(time + 1, pool)
    pool[at] = (pool[at]! & 0x3f) | 0x80
    const tail = pool.toString('hex', at, at + tailBytes)
    at += tailBytes
    return `${tail.slice(0, 4)}-${tail.slice(4)}`
  }
  return after => {
    const tail = tailNow()
    const count = counter.toString(16).padStart(3, '0')
    const id = `${head}${count}-${tail}`
    if (after === undefined || id > after) return id
    // Takes the millisecond after that of `after`. This process's other ids keep their own time.
    const digits = (Number.parseInt(after.slice(0, 8) + after.slice(9, 13), 16) + 1)
      .toString(16)
      .padStart(12, '0')
    return `${digits.slice(0, 8)}-${digits.slice(8)}-7${count}-${tail}`
  }
}
