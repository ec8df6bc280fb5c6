// The secret that signs access tokens: the operator's, or one made at the first start and kept
// beside the data.
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Clock } from '#ports/clock.ts'
import type { IdentityConfig } from '../config.ts'

const secretBytes = 48

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * A link is atomic and never replaces a file. So two processes that start at once both get the
 * first one's secret.
 */
function make(path: string, clock: Pick<Clock, 'id' | 'randomBytes'>): void {
  const temporary = `${path}.${clock.id()}`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeSync(file, `${Buffer.from(clock.randomBytes(secretBytes)).toString('base64url')}\n`)
    fsyncSync(file)
    linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    closeSync(file)
    rmSync(temporary, { force: true })
  }
}

export function createSigningKey({
  config,
  clock,
}: {
  config: Pick<IdentityConfig, 'secret' | 'data_dir'>
  clock: Pick<Clock, 'id' | 'randomBytes'>
}): string {
  if (config.secret !== undefined) return config.secret
  const path = join(resolve(config.data_dir), 'auth.secret')
  if (read(path) === undefined) make(path, clock)
  const secret = read(path)
  if (secret === undefined || secret.length < 32)
    throw new Error(
      `${path} holds no secret of 32 characters or more. Remove it, and every sign-in ` +
        'ends; or set AUTH_SECRET.',
    )
  return secret
}
