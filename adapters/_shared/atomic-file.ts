// Writes files atomically: a file is complete and on disk, or absent.
import * as fs from 'node:fs/promises'
import { dirname } from 'node:path'

/** The part of node:fs/promises that is used. Tests pass one that fails. */
export type Files = Pick<
  typeof fs,
  'mkdir' | 'open' | 'rename' | 'rm' | 'readdir' | 'stat' | 'unlink'
>

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined
export const isAbsent = (error: unknown): boolean => codeOf(error) === 'ENOENT'
export const isFull = (error: unknown): boolean =>
  codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT'

/** Syncs a folder, because a file's name is on disk only when its folder is. */
export async function syncFolder(path: string, files: Files = fs): Promise<void> {
  const handle = await files.open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Makes the folder, private to its owner and with its name on disk. It syncs every folder up to
 * `top`, even an existing one: another call may have made that folder without syncing it yet.
 */
export async function makeFolder(
  path: string,
  { top, files = fs }: { top?: string; files?: Files } = {},
): Promise<void> {
  const first = await files.mkdir(path, { recursive: true, mode: 0o700 })
  const last = top ?? (first === undefined ? path : dirname(first))
  for (let folder = path; folder.length > last.length; folder = dirname(folder))
    await syncFolder(dirname(folder), files)
}

/**
 * Writes `content` to `temporary`, then `place` says where the file goes. After a failure the
 * temporary file is removed.
 */
export async function writeThenPlace<T>(
  content: AsyncIterable<Uint8Array>,
  {
    temporary,
    place,
    files = fs,
  }: {
    temporary: string
    place: () => Promise<{ readonly path: string; readonly result: T }>
    files?: Files
  },
): Promise<T> {
  const handle = await files.open(temporary, 'wx', 0o600)
  let placed = false
  try {
    try {
      for await (const chunk of content) {
        for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at)).bytesWritten
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    const { path, result } = await place()
    await files.rename(temporary, path)
    placed = true
    await syncFolder(dirname(path), files)
    return result
  } finally {
    if (!placed) await files.rm(temporary, { force: true })
  }
}

/**
 * Removes files that nobody has written to for `idleMs`. It uses the file system's clock: `now` is
 * a path that was written just before.
 */
export async function sweepFolder(
  folder: string,
  { now, idleMs, files = fs }: { now: number; idleMs: number; files?: Files },
): Promise<number> {
  let swept = 0
  for (const name of await files.readdir(folder)) {
    const path = `${folder}/${name}`
    const age = await files.stat(path).then(
      found => now - found.mtimeMs,
      () => 0,
    )
    if (age > idleMs) {
      await files.rm(path, { force: true })
      swept++
    }
  }
  return swept
}
