// Bodies of which one field is read as a stream, in parts that a test chooses.
import { NewUpload } from '../../contracts/files.ts'
import { isFault } from '../../contracts/faults.ts'
import { streamBody } from '../../kernel/request-body/streamed.ts'
import { createValidator } from '../../kernel/validation/validate.ts'

export const validator = createValidator()
export const shape = {
  field: 'content_base64',
  encoding: 'base64' as const,
  check: validator.check('body', NewUpload),
  checkEarly: validator.check('body', { ...NewUpload, required: [] }),
}
export const bytesOf = (body: string | Uint8Array) =>
  typeof body === 'string' ? new TextEncoder().encode(body) : body

/** Counts how many parts were asked for. */
export function partsOf(parts: readonly Uint8Array[]) {
  let taken = 0
  return {
    taken: () => taken,
    source: (async function* () {
      for (const part of parts) {
        taken++
        yield part
      }
    })(),
  }
}
export async function read(parts: readonly Uint8Array[]) {
  const body = streamBody(partsOf(parts).source, shape)
  const content: Uint8Array[] = []
  for await (const part of body.content) content.push(part)
  return { content: Buffer.concat(content).toString('latin1'), fields: body.fields() }
}
export const refusal = (parts: readonly Uint8Array[]) =>
  read(parts).then(
    () => 'accepted',
    (error: unknown) => (isFault(error) ? `${error.code} ${error.message}` : String(error)),
  )
export const cutAt = (bytes: Uint8Array, at: number) => [bytes.subarray(0, at), bytes.subarray(at)]

export const around = (base64: string) =>
  bytesOf(`{"filename":"a","content_base64":"${base64}","mime":"a/b"}`)
