// The tools that plugins contribute now. Lists those that a model is offered, and checks the
// arguments that it sends.
import { createValidator, isFault, type Json, type Validator } from '#kernel'
import type { ToolCall, ToolSpec } from '#ports/models.ts'
import type { Tool } from '../api.ts'
import type { Run } from '../collections.ts'

export type ToolRegistry = ReturnType<typeof createToolRegistry>

/** The run's organisation, and the tools that its agent names; undefined: all of them. */
export type Allowed = { readonly orgId: string; readonly names: readonly string[] | undefined }
export const allowedFor = ({ orgId, terms }: Pick<Run, 'orgId' | 'terms'>): Allowed => ({
  orgId,
  names: terms.tools,
})

export function createToolRegistry({
  tools,
}: {
  tools: (scope: { readonly orgId: string }) => readonly Tool[]
}) {
  const offered = ({ orgId, names }: Allowed) =>
    tools({ orgId }).filter(({ name }) => !names || names.includes(name))
  const checks = new WeakMap<Tool, (value: unknown) => unknown>()
  const specs = new WeakMap<Tool, ToolSpec>()
  let validator: Validator | undefined
  const checkOf = (tool: Tool) => {
    const known = checks.get(tool)
    if (known) return known
    validator ??= createValidator()
    const check = validator.check('body', tool.parameters)
    checks.set(tool, check)
    return check
  }
  /** Returns the same object for the same tool, so that values derived from it can be cached. */
  const specOf = (tool: Tool): ToolSpec => {
    const { name, description, parameters } = tool
    const spec = specs.get(tool) ?? { name, description, parameters: parameters as unknown as Json }
    specs.set(tool, spec)
    return spec
  }
  const find = (name: string, allowed: Allowed): Tool | undefined =>
    offered(allowed).find(tool => tool.name === name)
  /**
   * Why the arguments do not match the schema, for the model to read. Undefined where they match.
   */
  const misfit = (tool: Tool, args: Json): string | undefined => {
    try {
      checkOf(tool)(structuredClone(args))
      return undefined
    } catch (error) {
      return isFault(error)
        ? error.message
        : `The parameters of the tool ${tool.name} are no valid JSON Schema: it cannot be called.`
    }
  }
  return {
    find,
    misfit,
    specs: (allowed: Allowed): ToolSpec[] => offered(allowed).map(specOf),
    /** The arguments, with the schema's defaults filled in. */
    argumentsOf: (tool: Tool, args: Json): Json => checkOf(tool)(structuredClone(args)) as Json,
    isValid:
      (allowed: Allowed) =>
      ({ name, arguments: args }: ToolCall): boolean => {
        const tool = find(name, allowed)
        return tool !== undefined && misfit(tool, args) === undefined
      },
  }
}
