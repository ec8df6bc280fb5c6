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
  // Rejections come here too, as Node's rule is: they are thrown when nobody handles them. A listener of their own would hide them from others who watch.
  const caught = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => {
    const culprit = culpritOf(error, plugins())
    if (defects++ < toldMax) log('error', 'process.defect', { kind: origin, ...(culprit === undefined ? {} : { plugin: culprit }), error })
    onDefect(culprit)
  }
  // Whoever read the log has gone: that is no reason to end.
  const unread = () => undefined
  process.on('uncaughtException', caught)
  process.stderr.on('error', unread)
  return () => {
    process.off('uncaughtException', caught)
    process.stderr.off('error', unread)
  }
}
