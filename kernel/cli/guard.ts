// Handles errors that nothing caught. Such an error is a defect: it is logged, and the process
// stops in the ordinary way with a non-zero exit code.
import type { Log } from '#ports/adapter.ts'

/**
 * The exit code after a defect (sysexits.h: EX_SOFTWARE). A supervisor then starts the process
 * again.
 */
export const defectCode = 70

/** How often one process logs defects, so that a repeated one does not fill the log. */
const toldMax = 20

type Parts = {
  readonly log: Log
  /** Finds the plugin in whose files the error was thrown, by the error's stack. */
  readonly blame: (error: unknown) => string | undefined
  /** Called for each defect. `culprit`: the plugin whose code threw it. */
  readonly onDefect: (culprit: string | undefined) => void
}

export function guardProcess({ log, blame, onDefect }: Parts): () => void {
  let defects = 0
  // Unhandled rejections arrive here too, because Node throws them. A listener of their own would
  // hide them from other observers.
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
  // A closed log pipe (EPIPE) must not end the process.
  const unread = () => undefined
  process.on('uncaughtException', caught)
  process.stderr.on('error', unread)
  return () => {
    process.off('uncaughtException', caught)
    process.stderr.off('error', unread)
  }
}
