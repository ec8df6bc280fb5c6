// A place as a check opens it: an adapter by its URL, on engines of its own for the ports on which
// it rides.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '#contracts/faults.ts'
import type { Adapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Lifecycle } from '#ports/token.ts'
import { loadAdapter } from '../../../kernel/adapters.ts'
import { crashable } from './crashable.ts'

export type Parts = {
  readonly port: string
  readonly adapter: Adapter
  readonly url: string
  readonly folders: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** By port: the URL of what an adapter rides on, instead of the embedded default in memory. */
  readonly on: Readonly<Record<string, string>>
  /** A folder in which the letters that were sent arrive as files. */
  readonly letters?: string | undefined
  /** Holds the data folder of each place. */
  readonly folder: string
  /** Another at each call, and in each run. */
  readonly mark: () => string
}
export type Checkplace<T> = {
  open(): Promise<T>
  /** As another process opens it, until it dies. */
  crashable(): Promise<{ readonly engine: T; die(): void }>
  /** Closes what it rides on. */
  clean(): Promise<void>
  /** A text with this place's mark. */
  marked(text: string): string
}

const embedded: Readonly<Record<string, string>> = {
  storage: 'memory:',
  eventlog: 'memory:',
  blobs: 'memory:',
  search: 'memory:',
  limits: 'memory:',
  mail: 'memory:',
  billing: 'ledger:',
  queue: 'storage:',
  models: 'scripted:?interval_ms=0',
}
/** `{n}` in a URL is another place for each check. */
export const placeholder = '{n}'

/** `storage=sqlite:/tmp/{n}.db`, several with spaces between them. INVALID_FIELD names `on`. */
export function ridesOf(
  text: string,
  { needs = [], port, scheme }: Adapter,
): Record<string, string> {
  const refuse = (why: string) => fault('INVALID_FIELD', { field: 'on', why })
  return Object.fromEntries(
    text
      .split(/\s+/)
      .filter(Boolean)
      .map(one => {
        const [, name, url] = /^([a-z]+)=(.+)$/.exec(one) ?? []
        if (name === undefined || url === undefined)
          throw refuse(`"${one}" is not written as <port>=<url>`)
        if (!needs.includes(name))
          throw refuse(
            `${port} ${scheme}: does not ride on ${name}; it rides on ` +
              `${needs.join(', ') || 'no other port'}`,
          )
        return [name, url]
      }),
  )
}

export async function placeOf<T>(
  { adapter, url, folders, env, on, folder, mark }: Parts,
  clock: Clock,
): Promise<Checkplace<T>> {
  const n = mark()
  const marked = (text: string) => text.replaceAll(placeholder, n)
  const dataDir = join(folder, n)
  const below = new Map<string, Lifecycle>()
  mkdirSync(dataDir, { recursive: true })
  const openOn = (one: Adapter, at: string, engine: (name: string) => unknown) =>
    one.open({
      url: new URL(marked(at)),
      dataDir,
      clock,
      log: () => undefined,
      secret: name => env[name],
      engine: <E>(name: string) => engine(name) as E,
    })
  const engineOf = (name: string) => (name === 'clock' ? clock : below.get(name))
  const ride = async ({ needs = [] }: Adapter) => {
    for (const name of needs) {
      if (engineOf(name)) continue
      const at = on[name] ?? embedded[name]
      if (at === undefined)
        throw fault('INVALID_FIELD', {
          field: 'on',
          why: `it rides on ${name}, which has no default here; write ${name}=<url>`,
        })
      const { adapter: lower } = await loadAdapter(name, 'on', marked(at), folders)
      await ride(lower)
      below.set(name, (await openOn(lower, at, engineOf)) as Lifecycle)
    }
  }
  const clean = async () => {
    for (const engine of [...below.values()].reverse()) await engine.close()
  }
  try {
    await ride(adapter)
  } catch (error) {
    await clean()
    throw error
  }
  return {
    marked,
    clean,
    open: () => openOn(adapter, url, engineOf) as Promise<T>,
    async crashable() {
      const own = new Map([...below].map(([name, engine]) => [name, crashable(engine)]))
      return {
        engine: (await openOn(adapter, url, name => own.get(name)?.engine ?? engineOf(name))) as T,
        die: () => own.forEach(one => one.die()),
      }
    },
  }
}
