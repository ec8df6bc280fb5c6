// The tools of today: what a model is offered, and whether the arguments that it sends fit.
import { createValidator, isFault, type Json, type Validator } from '#kernel'
import type { ToolCall, ToolSpec } from '#ports/models.ts'
import type { Tool } from './api.ts'

export type Toolbox = ReturnType<typeof createToolbox>

export function createToolbox({ tools }: { tools: () => readonly Tool[] }) {
  const checks = new WeakMap<Tool, (value: unknown) => unknown>()
  let validator: Validator | undefined
  const checkOf = (tool: Tool) => {
    const known = checks.get(tool)
    if (known) return known
    validator ??= createValidator()
    const check = validator.check('body', tool.parameters)
    checks.set(tool, check)
    return check
  }
  const find = (name: string, allowed: readonly string[] | undefined): Tool | undefined => allowed && !allowed.includes(name) ? undefined : tools().find(tool => tool.name === name)
  /** Why the arguments do not fit, for the model to read; undefined where they do. */
  const misfit = (tool: Tool, args: Json): string | undefined => {
    try {
      checkOf(tool)(structuredClone(args))
      return undefined
    } catch (error) {
      return isFault(error) ? error.message : `The parameters of the tool ${tool.name} are no valid JSON Schema: it cannot be called.`
    }
  }
  return {
    find, misfit,
    specs: (allowed: readonly string[] | undefined): ToolSpec[] => tools().filter(({ name }) => !allowed || allowed.includes(name)).map(({ name, description, parameters }) => ({ name, description, parameters: parameters as unknown as Json })),
    /** With the defaults of the schema filled in. */
    argumentsOf: (tool: Tool, args: Json): Json => checkOf(tool)(structuredClone(args)) as Json,
    isValid: (allowed: readonly string[] | undefined) => ({ name, arguments: args }: ToolCall): boolean => {
      const tool = find(name, allowed)
      return tool !== undefined && misfit(tool, args) === undefined
    },
  }
}
