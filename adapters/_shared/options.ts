// Reading the parameters and the path of an adapter's URL.
import { join, resolve } from 'node:path'
import { fault } from '#contracts/faults.ts'

/** A whole number among the URL's parameters. */
export function wholeOption(
  url: URL,
  name: string,
  otherwise: number,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {},
): number {
  const text = url.searchParams.get(name)
  if (text === null) return otherwise
  const value = /^\d+$/.test(text) ? Number(text) : NaN
  if (!(value >= min && value <= max))
    throw fault('INVALID_FIELD', {
      field: name,
      why: `must be a whole number from ${min} to ${max}`,
    })
  return value
}

/**
 * The folder that a URL names: `scheme:./relative`, `scheme:/absolute`, or nothing for the default
 * within the data folder.
 * A `file:` URL is always absolute (the URL standard makes `file:./x` into `file:///x`), so that
 * only `file:` alone means the default.
 */
export function folderOf(url: URL, { dataDir, name }: { dataDir: string; name: string }): string {
  const path = decodeURIComponent(url.pathname)
  return path === '' || path === '/' ? join(dataDir, name) : resolve(path)
}
