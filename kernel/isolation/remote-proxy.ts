// A proxy of a port or service in the other thread. A chain such as `store.tenant(caller).find(…)`
// is recorded, and sent whole when it is awaited or iterated.
import type { Rpc } from './rpc.ts'

/** One step of a recorded chain: a property name, or the arguments of a call. */
type Step = string | readonly unknown[]
export type Reach = { readonly token: string; readonly steps: readonly Step[] }

export function remoteProxy(link: Rpc, token: string, steps: readonly Step[] = []): unknown {
  const isCall = Array.isArray(steps.at(-1))
  const send = () => link.call('reach', { token, steps } satisfies Reach)
  return new Proxy(() => undefined, {
    get(_, name) {
      if (name === Symbol.asyncIterator)
        return async function* () {
          yield* (await send()) as AsyncIterable<unknown>
        }
      if (name === 'then')
        return isCall
          ? (resolve: (value: unknown) => void, reject: (error: unknown) => void) =>
              send().then(resolve, reject)
          : undefined
      if (typeof name === 'symbol') return undefined
      if (isCall && (name === 'catch' || name === 'finally'))
        return (given: never) => send()[name](given)
      return remoteProxy(link, token, [...steps, name])
    },
    apply: (_, __, args: unknown[]) => remoteProxy(link, token, [...steps, args]),
  })
}

/** Executes the steps that a proxy recorded. Throws for steps that the target does not offer. */
export async function reached(root: unknown, steps: readonly Step[]): Promise<unknown> {
  let owner: unknown
  let value = root
  for (const step of steps) {
    if (typeof step !== 'string') {
      if (typeof value !== 'function') throw new TypeError('What was called is no function.')
      ;[owner, value] = [undefined, await Reflect.apply(value, owner, step)]
    } else {
      if (typeof value !== 'object' || value === null || step in Object.prototype)
        throw new TypeError(`There is no ${step} here.`)
      ;[owner, value] = [value, (value as Record<string, unknown>)[step]]
    }
  }
  return value
}
