// Writes emails as .eml files into a folder instead of sending them. This is the default; any mail
// program opens the files.
import * as nodeFiles from 'node:fs/promises'
import { join } from 'node:path'
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Mailer } from '#ports/mail.ts'
import {
  codeOf,
  isFull,
  makeFolder,
  sweepFolder,
  syncFolder,
  writeThenPlace,
  type Files,
} from '../_shared/atomic-file.ts'
import { closable } from '../_shared/closable.ts'
import { checkedFrom, checkEmail, compose, fromDefault } from './lib/emails.ts'
import { folderOf } from '../_shared/options.ts'

const serviceName = 'The outbox'

/**
 * Each email is written elsewhere, synced and moved into place, so that no reader of the folder
 * sees half of one.
 */
export async function outbox({
  folder,
  from = fromDefault,
  clock,
  files = nodeFiles,
}: {
  folder: string
  from?: string
  clock: Pick<Clock, 'id' | 'now'>
  files?: Files
}): Promise<Mailer> {
  checkedFrom(from)
  const temporary = join(folder, '.temporary')
  await makeFolder(temporary, { files })
  // A data folder has one server, so files that lie here now belong to no process.
  await sweepFolder(temporary, { now: Infinity, idleMs: 0, files })
  const { check, shut } = closable(serviceName)
  return {
    async send(letter, { signal } = {}) {
      check()
      signal?.throwIfAborted()
      checkEmail(letter)
      const bytes = await compose(letter, { from, clock })
      signal?.throwIfAborted()
      const id = clock.id()
      const name = `${new Date(clock.now()).toISOString().replaceAll(':', '-')}-${id}.eml`
      try {
        await writeThenPlace(
          (async function* () {
            yield bytes
          })(),
          {
            temporary: join(temporary, id),
            files,
            place: async () => ({ path: join(folder, name), result: undefined }),
          },
        )
      } catch (error) {
        throw fault(
          'UNAVAILABLE',
          {
            what: serviceName,
            why: isFull(error)
              ? 'its disk is full'
              : `its folder cannot be written (${codeOf(error) ?? 'unknown error'})`,
          },
          { cause: error },
        )
      }
    },
    async ping() {
      check()
      await syncFolder(temporary, files).catch((cause: unknown) => {
        throw fault(
          'UNAVAILABLE',
          { what: serviceName, why: 'its folder cannot be read' },
          { cause },
        )
      })
    },
    async close() {
      shut()
    },
  }
}

export default defineAdapter<Mailer>({
  port: 'mail',
  scheme: 'outbox',
  options: { from: `The sender, an address or \`Name <address>\`; default ${fromDefault}.` },
  open: async ({ url, dataDir, clock }) =>
    outbox({
      folder: folderOf(url, { dataDir, name: 'outbox' }),
      from: url.searchParams.get('from') ?? fromDefault,
      clock,
    }),
})
