// The last net: what nobody caught is a defect of this process. It is logged, and the process goes through its ordinary stop to a non-zero end.
import { dirname, sep } from 'node:path'
import type { Log } from '#ports/adapter.ts'

/** How a process ends after a defect (sysexits.h: EX_SOFTWARE), so that whoever supervises it starts it again. */
export const defectCode = 70

/** A defect that comes again and again is told so many times. */
const toldMax = 20

type Suspect = { readonly name: string; /** The file with the plugin. */ readonly source: string }
type Parts = {
  readonly log: Log
  readonly plugins: () => readonly Suspect[]
  /** Called for each defect; `culprit` is the plugin in whose folder it was thrown. */
  readonly onDefect: (culprit: string | undefined) => void
}

/** The plugin whose folder the stack names first; undefined where it names none. */
export function culpritOf(error: unknown, plugins: readonly Suspect[]): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : '', folders = plugins.filter(({ source }) => source !== '').map(({ name, source }) => ({ name, folder: dirname(source) + sep }))
  for (const frame of stack.split('\n')) {
    const found = folders.find(({ folder }) => frame.includes(folder))
    if (found) return found.name
  }
  return undefined
}

export function guardProcess({ log, plugins, onDefect }: Parts): () => void {
  let defects = 0
  const caught = (kind: string) => (error: unknown) => {
    const culprit = culpritOf(error, plugins())
    if (defects++ < toldMax) log('error', 'process.defect', { kind, ...(culprit === undefined ? {} : { plugin: culprit }), error })
    onDefect(culprit)
  }
  const exception = caught('exception'), rejection = caught('rejection')
  // Whoever read the log has gone: that is no reason to end.
  const unread = () => undefined
  process.on('uncaughtException', exception).on('unhandledRejection', rejection)
  process.stderr.on('error', unread)
  return () => {
    process.off('uncaughtException', exception).off('unhandledRejection', rejection)
    process.stderr.off('error', unread)
  }
}
