// Reading the parameters and the path of an adapter's URL.
import { join, resolve } from 'node:path'
import { fault } from '#contracts/faults.ts'

/** Reads a whole number from the URL's parameters. */
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
 * The folder of a URL: `scheme:./relative`, `scheme:/absolute`, or nothing for the default in the
 * data folder. A `file:` URL is always absolute, because the URL standard turns `file:./x` into
 * `file:///x`. Only `file:` alone means the default.
 */
export function folderOf(url: URL, { dataDir, name }: { dataDir: string; name: string }): string {
  const path = decodeURIComponent(url.pathname)
  return path === '' || path === '/' ? join(dataDir, name) : resolve(path)
}
