// Makes the document and the page once for each set of plugins, because both take milliseconds and
// anybody may ask.
import { createHash } from 'node:crypto'
import type { Bytes } from '#contracts/contract.ts'
import { openapi } from '#contracts/openapi/document.ts'
import { reply, type KernelInfo } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import { pageOf } from './page.ts'

type Page = { readonly bytes: Bytes; readonly headers: Readonly<Record<string, string>> }
type Pages = { readonly key: string; readonly document: Page; readonly page: Page }

type Texts = { readonly document: string; readonly page: string }

/**
 * The texts of both pages. A plugin that does not fit beside those before it is left out, and the
 * log says why. Otherwise nobody could read the description of the others.
 */
function textsOf(host: KernelInfo, log: Log): Texts {
  const write = (names: ReadonlySet<string>): Texts => {
    const chosen = host.plugins().filter(({ name }) => names.has(name))
    const types = new Set(chosen.flatMap(({ emits }) => emits))
    const document = openapi(
      host
        .operations()
        .filter(({ plugin }) => names.has(plugin))
        .map(({ key, path, plugin, operation }) => ({ key, path, group: plugin, operation })),
      Object.fromEntries(Object.entries(host.events()).filter(([type]) => types.has(type))),
      host.version,
    )
    return { document: JSON.stringify(document), page: pageOf(document) }
  }
  const all = host.plugins().map(({ name }) => name)
  try {
    return write(new Set(all))
  } catch {
    const fitting = new Set<string>()
    for (const plugin of all)
      try {
        write(new Set([...fitting, plugin]))
        fitting.add(plugin)
      } catch (error) {
        log('warn', 'left_out', { name: plugin, error })
      }
    return write(fitting)
  }
}

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

export function createPages({ host, log }: { host: KernelInfo; log: Log }) {
  let made: Pages | undefined
  const now = (): Pages => {
    const key = host
      .plugins()
      .map(({ name, generation }) => `${name} ${generation}`)
      .join()
    if (made?.key === key) return made
    const { document, page } = textsOf(host, log)
    return (made = {
      key,
      document: pageFor(document, 'application/json; charset=utf-8'),
      page: pageFor(page, 'text/html; charset=utf-8', styleOnly),
    })
  }
  const answer = ({ bytes, headers }: Page, tags: string | undefined) =>
    reply(bytes, { headers, ...(isKnown(tags, headers['etag']!) ? { status: 304 } : {}) })
  return {
    document: (tags: string | undefined) => answer(now().document, tags),
    page: (tags: string | undefined) => answer(now().page, tags),
  }
}
