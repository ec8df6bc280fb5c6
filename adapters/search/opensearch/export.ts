// Reads an installation's indexes, so that they can be moved elsewhere.
import type { Contents, SearchEngine } from '#ports/search.ts'
import { checkedOrganisation } from '../../_shared/blob-names.ts'
import { compareText } from '../../_shared/documents.ts'
import { checkedCollection, checkedPage, type Paged } from '../lib/checks.ts'
import { single } from '../lib/vectors.ts'
import type { Stored } from './bulk.ts'
import { orGone, type Connection } from './connection.ts'
import type { Indices, Known } from './indices.ts'

type Page = {
  readonly hits: { readonly hits: readonly { readonly _source: Omit<Stored, 'terms' | 'stamp'> }[] }
}

export function createContents(
  { call }: Connection,
  indices: Indices,
  check: () => void,
): Pick<SearchEngine, 'addresses' | 'contents'> {
  const page = async (
    { index, meta: { spec } }: Known,
    { after, limit }: Paged,
  ): Promise<Contents> => {
    // Makes every acknowledged write visible, whichever process made it.
    await call('POST', `/${index}/_refresh`, {}, orGone)
    const {
      hits: { hits },
    } = await call<Page>(
      'POST',
      `/${index}/_search`,
      {
        body: {
          size: limit,
          track_total_hits: false,
          sort: [{ id: 'asc' }],
          _source: { excludes: ['stamp'] },
          ...(after === '' ? {} : { search_after: [after] }),
        },
        query: { allow_partial_search_results: false },
      },
      orGone,
    )
    const passages = hits.map(({ _source: { id, text, said, fields, vector } }) => ({
      id,
      text,
      fields,
      ...(said ? { language: said } : {}),
      ...(vector ? { vector: single(vector) } : {}),
    }))
    return { spec, passages }
  }
  return {
    async addresses({ after = '', limit }) {
      check()
      return (await indices.addresses())
        .filter(address => compareText(address, after) > 0)
        .sort(compareText)
        .slice(0, limit)
    },
    async contents(orgId, collection, asked) {
      check()
      const paged = checkedPage(asked)
      return indices.on(checkedOrganisation(orgId), checkedCollection(collection), known =>
        page(known, paged),
      )
    },
  }
}
