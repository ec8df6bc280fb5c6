// A prefix of its own on the server that OPENSEARCH_URL names, for one check; its indexes are
// removed afterwards.
import { randomUUID } from 'node:crypto'

export const openSearchUrl = process.env['OPENSEARCH_URL']

export function freshPrefix() {
  const url = new URL(openSearchUrl!)
  const prefix = `kit_${randomUUID().slice(0, 8)}`
  url.pathname = `/${prefix}`
  return { url, prefix }
}
