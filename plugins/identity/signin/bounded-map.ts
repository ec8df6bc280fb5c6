// A map that drops its oldest entry. What it holds can always be read again.

export type BoundedMap<V> = {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
}

export function createBoundedMap<V>(max: number): BoundedMap<V> {
  const entries = new Map<string, V>()
  return {
    get: key => entries.get(key),
    set(key, value) {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > max) entries.delete(entries.keys().next().value!)
    },
    delete: key => void entries.delete(key),
  }
}
