// What the kernel tells plugins about itself: a port that it provides by itself.
import type { TSchema } from 'typebox'
import type { Operation, OperationKey } from '#contracts/contract.ts'
import type { Registry } from 'prom-client'
import { port } from '#ports/token.ts'

export type MountedOperation = { readonly key: OperationKey; readonly path: string; readonly plugin: string; readonly operation: Operation }
export type Check = { readonly name: string; readonly ok: boolean; readonly detail?: string }
export type Introspection = {
  readonly version: string
  /** Of this start of this process; no other ever has the same. */
  readonly processId: string
  /** Every operation that is served now; `path` includes its mount. */
  operations(): readonly MountedOperation[]
  /** SSE event types → the schema of their data. */
  events(): Readonly<Record<string, TSchema>>
  plugins(): readonly { readonly name: string; readonly version: string; readonly generation: number }[]
  /** Asks every port and plugin; each within two seconds. */
  health(): Promise<readonly Check[]>
  /** False from the moment that the stop began. */
  serving(): boolean
  readonly metrics: Registry
}

export const Host = port<Introspection>('host')
