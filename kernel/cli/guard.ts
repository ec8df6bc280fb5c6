// The last net: what nobody caught is a defect of this process. It is logged, and the process goes
// through its ordinary stop to a non-zero end.
import type { Log } from '#ports/adapter.ts'

/**
 * How a process ends after a defect (sysexits.h: EX_SOFTWARE), so that whoever supervises it starts
 * it again.
 */
export const defectCode = 70

/** A defect that comes again and again is told so many times. */
const toldMax = 20

type Parts = {
  readonly log: Log
  /** The plugin in whose files it was thrown, by the error's stack. */
  readonly blame: (error: unknown) => string | undefined
  /** Called for each defect; `culprit`: the plugin that is blamed. */
  readonly onDefect: (culprit: string | undefined) => void
}

export function guardProcess({ log, blame, onDefect }: Parts): () => void {
  let defects = 0
  // Rejections come here too, as Node's rule is: they are thrown when nobody handles them. A
  // listener of their own would hide them from others who watch.
  const caught = (error: unknown, origin: NodeJS.UncaughtExceptionOrigin) => {
    const culprit = blame(error)
    if (defects++ < toldMax)
      log('error', 'process.defect', {
        kind: origin,
        ...(culprit === undefined ? {} : { plugin: culprit }),
        error,
      })
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
