// Bounds the arguments of tool calls before they are journalled. A call beyond the bounds fails by
// itself, and the model is told; the run goes on.
import { fault } from '#kernel'
import type { ToolCall } from '#ports/models.ts'
import { depthOf, jsonBytes } from '../journal/bytes.ts'

/** Bytes of the arguments as JSON; levels of arrays and objects in them. */
export type ArgumentBounds = { readonly bytesMax: number; readonly depthMax: number }
/** A call as it is journalled. `refused`: why its arguments are left out, for the model to read. */
export type Received = { readonly call: ToolCall; readonly refused?: string }

/** Characters of the names that a provider gives to a call and to its tool. */
const nameCharsMax = 200

/**
 * Checks a call against the bounds. Throws MODEL_FAILED for an id that is too long: without the id,
 * the model could not be answered.
 */
export function received(
  { id, name, arguments: args }: ToolCall,
  { bytesMax, depthMax }: ArgumentBounds,
): Received {
  if (id.length > nameCharsMax)
    throw fault('MODEL_FAILED', { why: `it gave a tool call an id of ${id.length} characters` })
  const kept = { id, name: name.slice(0, nameCharsMax) }
  const refuse = (refused: string): Received => ({ call: { ...kept, arguments: {} }, refused })
  if (name.length > nameCharsMax)
    return refuse(`There is no tool with a name of ${name.length} characters.`)
  // The depth is checked first, because counting the bytes recurses into the value.
  if (depthOf(args) > depthMax)
    return refuse(`The arguments are nested deeper than ${depthMax} levels: they were not taken.`)
  const bytes = jsonBytes(args)
  return bytes > bytesMax
    ? refuse(
        `The arguments take ${bytes} bytes, more than the ${bytesMax} that a call may: ` +
          'they were not taken.',
      )
    : { call: { ...kept, arguments: args } }
}

/** A call that the model has begun, as it is journalled. */
export const opened = ({ id, name }: { readonly id: string; readonly name: string }) => ({
  id: id.slice(0, nameCharsMax),
  name: name.slice(0, nameCharsMax),
})
