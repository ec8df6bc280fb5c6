// The search port on an embedded index, wherever its calls run.
import type { Contents, Passage, Passages, SearchEngine } from '#ports/search.ts'
import { checkedOrganisation } from '../../_shared/blob-names.ts'
import { raise } from '../../_shared/sqlite/failures.ts'
import type { Indexed } from './collections.ts'
import type { Call } from './threads.ts'

export type Carrier = {
  check(): void
  write(
    call: Call,
    options?: { readonly weight?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<unknown>
  read(call: Call, options?: { readonly signal?: AbortSignal | undefined }): Promise<unknown>
  ping(): Promise<void>
  close(): Promise<void>
}

/** The checks are loaded with the first call: a process that never searches does not load them. */
const specChecks = () => import('../lib/specs.ts')
const passageChecks = () => import('../lib/passages.ts')
const weightOf = (passages: readonly Passage[]) =>
  passages.reduce((sum, { text = '', vector = [] }) => sum + 2 * text.length + 8 * vector.length, 0)

export function searchEngine({ check, write, read, ping, close }: Carrier): SearchEngine {
  const made = async (
    kind: string,
    org: string,
    collection: string,
    ...args: unknown[]
  ): Promise<Call> => {
    check()
    return [kind, org, (await specChecks()).checkedCollection(collection), ...args]
  }
  return {
    within(orgId) {
      check()
      const org = checkedOrganisation(orgId)
      const call = (kind: string, collection: string, ...args: unknown[]) =>
        made(kind, org, collection, ...args)
      const passages: Passages = {
        define: async (collection, spec) =>
          void (await write(await call('define', collection, spec))),
        drop: async collection => (await write(await call('drop', collection))) as boolean,
        async collections() {
          check()
          return (await read(['collections', org])) as string[]
        },
        async index(collection, list, { signal } = {}) {
          const load = await call('index', collection, list)
          ;(await passageChecks()).checkBatch(list)
          const { indexed, errors } = (await write(load, {
            weight: weightOf(list),
            signal,
          })) as Indexed
          return {
            indexed,
            errors: errors.map(({ at, id, failure }) => ({ at, id, error: raise(failure) })),
          }
        },
        remove: async (collection, which) =>
          (await write(await call('remove', collection, which))) as number,
        query: async (collection, { signal, ...query }) =>
          (await read(await call('query', collection, query), { signal })) as Awaited<
            ReturnType<Passages['query']>
          >,
        match: async (collection, { signal, ...query }) =>
          (await read(await call('match', collection, query), { signal })) as Awaited<
            ReturnType<Passages['match']>
          >,
        count: async (collection, where) =>
          (await read(await call('count', collection, where))) as number,
      }
      return passages
    },
    async addresses({ after = '', limit }) {
      check()
      return (await read(['addresses', after, limit])) as string[]
    },
    contents: async (orgId, collection, page) =>
      (await read(
        await made(
          'contents',
          checkedOrganisation(orgId),
          collection,
          (await passageChecks()).checkedPage(page),
        ),
      )) as Contents,
    ping: async () => {
      check()
      await ping()
    },
    close,
  }
}
