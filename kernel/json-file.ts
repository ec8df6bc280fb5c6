// Files of JSON in DATA_DIR, each written whole or not at all.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Reads what `writeJsonAtomic` wrote. `shaped` throws when the content has another shape. */
export function readJson<T>(path: string, absent: T, shaped: (value: T) => T): T {
  try {
    return existsSync(path) ? shaped(JSON.parse(readFileSync(path, 'utf8')) as T) : absent
  } catch (cause) {
    throw new Error(`${path} is not what was written there; correct or remove it.`, { cause })
  }
}
/** Writes the whole file or nothing. */
export function writeJsonAtomic(path: string, value: object): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 1)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}
