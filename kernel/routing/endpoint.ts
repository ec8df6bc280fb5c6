// Compiles a row of a contract: its handler, and the checks of everything in a request.
import type { Operation, OperationKey } from '#contracts/contract.ts'
import { isSchema } from '#contracts/statuses.ts'
import type { Instance } from '../loading/instance.ts'
import type { Plugin } from '../plugin.ts'
import { createValidator, type Check, type Compile } from '../validation/validate.ts'

export type Endpoint = {
  readonly key: OperationKey
  readonly path: string
  readonly operation: Operation
  readonly instance: Instance
  readonly handler: (call: never) => unknown
  readonly checks: {
    readonly params?: Check
    readonly query?: Check
    readonly headers?: Check
    readonly body?: Check
    /** Checks the fields before the content of a streamed body. */
    readonly bodyStart?: Check
    readonly reply?: Check
  }
}
const mounts = { v1: '/api/v1', root: '' } as const
/** The path with its mount. */
export const pathOf = ({ mount = 'v1' }: Pick<Plugin, 'mount'>, key: string) =>
  mounts[mount] + key.slice(key.indexOf(' ') + 1)

export type Compiling = { readonly strict: boolean; readonly compile: Compile }

/**
 * Compiles an instance's rows with one Ajv, which goes with the generation. `strict` checks replies
 * too.
 */
export function endpointsOf(instance: Instance, { strict, compile }: Compiling): Endpoint[] {
  const validator = createValidator({ compile })
  const { contract = {}, routes = {} } = instance.plugin
  const object = (properties: Record<string, unknown>, required: string[]) => ({
    type: 'object',
    properties,
    required,
  })
  const compiled = (key: string, operation: Operation): Endpoint => ({
    key: key as OperationKey,
    operation,
    instance,
    handler: routes[key]!,
    path: pathOf(instance.plugin, key),
    checks: {
      ...(operation.params && {
        params: validator.check('path', object(operation.params, Object.keys(operation.params))),
      }),
      ...(operation.query && {
        query: validator.check('query', { ...operation.query, additionalProperties: false }),
      }),
      ...(operation.headers && {
        headers: validator.check('headers', object(operation.headers, [])),
      }),
      ...(operation.body && { body: validator.check('body', operation.body) }),
      ...(operation.body &&
        operation.streamed && {
          bodyStart: validator.check('body', { ...operation.body, required: [] }),
        }),
      ...(strict &&
        isSchema(operation.reply) && { reply: validator.check('reply', operation.reply) }),
    },
  })
  return Object.entries(contract).map(([key, operation]) => {
    try {
      return compiled(key, operation)
    } catch (error) {
      throw new Error(
        `${instance.plugin.name} ${instance.plugin.version} cannot offer ${key}: ` +
          `${(error as Error).message}`,
        { cause: error },
      )
    }
  })
}
