// What a model asks for is bounded before it is written down: a call that is out of bounds is an
// error of that call, which the model is told, and of nothing else.
import { fault } from '#kernel'
import type { ToolCall } from '#ports/models.ts'
import { depthOf, jsonBytes } from '../journal/bytes.ts'

/** Bytes of the arguments as JSON; levels of arrays and objects in them. */
export type ArgumentBounds = { readonly bytesMax: number; readonly depthMax: number }
/** As it is written down; `refused`: why its arguments are not, for the model to read. */
export type Received = { readonly call: ToolCall; readonly refused?: string }

/** Characters of the names that a provider gives to a call and to its tool. */
const nameCharsMax = 200

/** MODEL_FAILED for a call that the model could not be answered to. */
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
  // The depth first: whatever counts the bytes goes down into the value.
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

/** A call that has begun, as it is written down. */
export const opened = ({ id, name }: { readonly id: string; readonly name: string }) => ({
  id: id.slice(0, nameCharsMax),
  name: name.slice(0, nameCharsMax),
})
