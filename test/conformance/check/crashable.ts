/**
 * The engine as a process sees it that dies at some moment: from then on its calls never come back.
 */
export function crashable<T extends object>(living: T): { readonly engine: T; die(): void } {
  let dead = false
  const never = new Promise<never>(() => {})
  const engine = new Proxy(living, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function'
        ? async (...asked: unknown[]) =>
            dead ? never : (value as (...asked: unknown[]) => unknown)(...asked)
        : value
    },
  })
  return { engine, die: () => void (dead = true) }
}
