// Decodes Base64 (RFC 4648, section 4) piece by piece. Buffer.from skips unknown characters, but a
// damaged file must be refused.

const group = /^[A-Za-z0-9+/]*={0,2}$/
const foreign = /[^A-Za-z0-9+/]/

type Base64Decoder = {
  /** The bytes of every complete group of four characters so far. Throws the error of `refuse`. */
  decode(text: string): Uint8Array
  /** Throws when the text ended inside a group. */
  end(): void
}

/**
 * Requires padding (section 3.2) and refuses other characters and stray bits (3.3, 3.5). `refuse`
 * gets a sentence without its subject.
 */
export function base64Decoder(refuse: (why: string) => Error): Base64Decoder {
  let rest = ''
  let decoded = 0
  let padded = false
  return {
    decode(text) {
      const all = rest + text
      const whole = all.slice(0, all.length - (all.length % 4))
      rest = all.slice(whole.length)
      if (padded && all !== '')
        throw refuse(`is not Base64: it goes on after its padding, at character ${decoded + 1}`)
      if (!group.test(whole))
        throw refuse(`is not Base64 at character ${decoded + foreign.exec(whole)!.index + 1}`)
      padded = whole.endsWith('=')
      const bytes = Buffer.from(whole, 'base64')
      if (padded && Buffer.from(whole.slice(-4), 'base64').toString('base64') !== whole.slice(-4))
        throw refuse(
          'is not Base64: bits are left over in its last group, at character ' +
            `${decoded + whole.length - 3}`,
        )
      decoded += whole.length
      return bytes
    },
    end() {
      if (rest !== '')
        throw refuse(
          `is not Base64: it ends within a group of four, at character ${decoded + rest.length}`,
        )
    },
  }
}
