// Passages in OpenSearch 2.19 or 3.x: an index for each collection, behind an alias.
import { defineAdapter, type AdapterContext } from '#ports/adapter.ts'
import type { SearchEngine } from '#ports/search.ts'
import { checkedOrganisation } from '../_shared/blob-names.ts'
import { closable } from '../_shared/closable.ts'
import { createBulk } from './opensearch/bulk.ts'
import { connect, urlOptions, serviceName } from './opensearch/connection.ts'
import { createContents } from './opensearch/export.ts'
import { createGenerations } from './opensearch/reindex.ts'
import { createIndices } from './opensearch/indices.ts'
import { passagesOf } from './opensearch/passages.ts'
import { wholeOption } from '../_shared/options.ts'

/** Resolves when a cluster answers; UNAVAILABLE when none does. */
export async function openSearch({
  url,
  clock,
  secret,
}: Pick<AdapterContext, 'url' | 'clock' | 'secret'>): Promise<SearchEngine> {
  const shards = wholeOption(url, 'shards', 1, { min: 1, max: 1024 })
  const asked = wholeOption(url, 'replicas', -1 as number, { max: 16 })
  const connection = connect({ url, clock, secret })
  const { check, shut } = closable(serviceName)
  const health = () => connection.call<{ number_of_data_nodes: number }>('GET', '/_cluster/health')
  try {
    const { number_of_data_nodes: nodes } = await health()
    const indices = createIndices(connection, clock)
    const bulk = createBulk(connection)
    const generations = createGenerations({
      connection,
      indices,
      bulk,
      clock,
      sizes: { shards, replicas: asked >= 0 ? asked : nodes > 1 ? 1 : 0 },
    })
    return {
      ...createContents(connection, indices, check),
      within(orgId) {
        check()
        return passagesOf(checkedOrganisation(orgId), {
          connection,
          indices,
          bulk,
          generations,
          clock,
          check,
        })
      },
      async ping() {
        check()
        await health()
      },
      async close() {
        if (shut()) await connection.close()
      },
    }
  } catch (error) {
    await connection.close()
    throw error
  }
}

export default defineAdapter<SearchEngine>({
  port: 'search',
  scheme: 'opensearch',
  options: urlOptions,
  open: openSearch,
})
