// Makes the document and the page once for each set of plugins, because both take milliseconds and
// anybody may ask.
import { createHash } from 'node:crypto'
import type { Bytes } from '#contracts/contract.ts'
import { openapi } from '#contracts/openapi/document.ts'
import { reply, type KernelInfo } from '#kernel'
import { pageOf } from './page.ts'

type Page = { readonly bytes: Bytes; readonly headers: Readonly<Record<string, string>> }
type Pages = { readonly key: string; readonly document: Page; readonly page: Page }

const documentOf = (host: KernelInfo) =>
  openapi(
    host
      .operations()
      .map(({ key, path, plugin, operation }) => ({ key, path, group: plugin, operation })),
    host.events(),
    host.version,
  )

/** Clients may cache it but must revalidate, because a reload changes it. */
function pageFor(text: string, mime: string, headers: Readonly<Record<string, string>> = {}): Page {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  return {
    bytes: { stream: Buffer.from(text), mime },
    headers: { etag, 'cache-control': 'public, no-cache', ...headers },
  }
}
/** The page has a style of its own and nothing else: no script, no picture, no frame around it. */
const styleOnly = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'",
}

/** Does one of the client's tags (RFC 9110, section 13.1.2) name this page? */
const isKnown = (tags: string | undefined, etag: string) =>
  tags !== undefined &&
  tags.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*')

export function createPages({ host }: { host: KernelInfo }) {
  let made: Pages | undefined
  const now = (): Pages => {
    const key = host
      .plugins()
      .map(({ name, generation }) => `${name} ${generation}`)
      .join()
    if (made?.key === key) return made
    const document = documentOf(host)
    return (made = {
      key,
      document: pageFor(JSON.stringify(document), 'application/json; charset=utf-8'),
      page: pageFor(pageOf(document), 'text/html; charset=utf-8', styleOnly),
    })
  }
  const answer = ({ bytes, headers }: Page, tags: string | undefined) =>
    reply(bytes, { headers, ...(isKnown(tags, headers['etag']!) ? { status: 304 } : {}) })
  return {
    document: (tags: string | undefined) => answer(now().document, tags),
    page: (tags: string | undefined) => answer(now().page, tags),
  }
}
