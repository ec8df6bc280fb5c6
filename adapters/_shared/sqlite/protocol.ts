// Messages between the main thread and the writer's thread. They are plain arrays, whose structured
// clone costs least.
import type { FaultCode } from '#contracts/faults.ts'

/** `bytesMax` is a quota of the file; 0 for none. */
export type Start = { readonly path: string; readonly bytesMax: number }
/** The kind, then what it takes; documents and events travel as JSON text. */
export type Operation = readonly [kind: string, ...args: unknown[]]
/**
 * `through` numbers the last operation; `epoch` is what the sender knew when it submitted them;
 * `ask` wants them on disk soon.
 */
export type Batch = readonly [
  epoch: number,
  through: number,
  now: number,
  ask: boolean,
  operations: readonly Operation[],
]
/** A failure travels as a plain object, which no answer of an operation is. */
export type Failure = {
  readonly code: FaultCode
  readonly values: Readonly<Record<string, string | number>>
}
/**
 * `settled`: every operation up to this number is on disk (or wrote nothing). `answers` is absent
 * when only that changed.
 */
export type Reply = readonly [epoch: number, settled: number, answers?: readonly unknown[]]
/** The first message of the thread: undefined when it serves. */
export type Started = { readonly refusal?: Failure }
