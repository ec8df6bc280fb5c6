// Checks who owns the admin socket. Its owner reads operators' options and writes their answers, so
// no other user may have made it.
import { lstatSync, statSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { fault } from '#contracts/faults.ts'

const ownOnly = 0o700
const others = 0o077

const found = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

/**
 * INVALID_FIELD unless only the folder's owner can write in it. The owner must be this user, or the
 * owner of the data folder.
 */
export function requirePrivate(path: string, dataDir: string): void {
  const self = process.getuid?.()
  const folder = dirname(path)
  const stats = found(folder)
  if (self === undefined || !stats) return
  const owners = [self, statSync(dataDir, { throwIfNoEntry: false })?.uid]
  const refuse = (why: string) =>
    fault('INVALID_FIELD', { field: 'DATA_DIR', why: `has its admin socket in ${folder}, ${why}` })
  if (!stats.isDirectory()) throw refuse('which is no folder of its own; remove it')
  if (!owners.includes(stats.uid)) throw refuse('which belongs to another user; have it removed')
  if ((stats.mode & others) !== 0)
    throw refuse(
      `which others may enter (mode ${(stats.mode & 0o777).toString(8)} instead of ` +
        `${ownOnly.toString(8)}); chmod 700 it, once you know what lies in it`,
    )
  const socket = found(path)
  if (socket && (!socket.isSocket() || !owners.includes(socket.uid)))
    throw refuse('and what lies there is none of this user')
}
