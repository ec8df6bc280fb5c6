// What the runner and its processes tell each other.

export type Asked = { readonly file: string }
export type Answered = {
  readonly file: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** CPU in milliseconds: until the process was there, where this is its first file. */
  readonly bootMs: number
  /** Until every test of the file was declared: imports, and what the file opens first. */
  readonly startMs: number
  /** From the beginning of the file to its end, children included that have ended. */
  readonly cpuMs: number
  readonly rssMib: number
}

/** It ends the output that belongs to one file. */
export const endOfFile = '\u0000end of file\n'
