// The desired state that operators chose: plugins from elsewhere, plugins that are off, limits and
// threads. Kept in DATA_DIR. Processes that share a storage keep it there, with a copy in DATA_DIR.
import { isAbsolute, join, relative, resolve } from 'node:path'
import { hasCode } from '#contracts/faults.ts'
import { collection, type StorageEngine } from '#ports/storage.ts'
import { readJson, writeJsonAtomic } from '../json-file.ts'
import type { ResourceLimits } from '../kernel-ports.ts'

type DesiredState = {
  /** Files with a plugin. */ readonly loaded: readonly string[]
  readonly off: readonly string[]
  /** Plugin → the organisations that it is limited to. */
  readonly only: Readonly<Record<string, readonly string[]>>
  /** Plugin → the limits of its thread. */
  readonly isolated: Readonly<Record<string, ResourceLimits>>
}
export type Editable = {
  readonly loaded: Set<string>
  readonly off: Set<string>
  readonly only: Map<string, readonly string[]>
  readonly isolated: Map<string, ResourceLimits>
}
/** `changes` counts the changes, so that other processes notice one. */
type Shared = { readonly id: string; readonly changes: number; readonly choices: string }

const Kept = collection<Shared>({ name: 'kernel_choices', scope: 'platform' })
const id = 'plugins'
const none: DesiredState = { loaded: [], off: [], only: {}, isolated: {} }
const fileIn = (dataDir: string) => join(dataDir, 'plugins.json')

/** Paths inside DATA_DIR are stored relative to it: each process has a DATA_DIR of its own. */
const placed =
  (dataDir: string) =>
  (path: string): string => {
    const within = relative(resolve(dataDir), path)
    return within.startsWith('..') || isAbsolute(within) ? path : within
  }
const shaped =
  (dataDir: string) =>
  ({ loaded, off, only = {}, isolated = {} }: DesiredState): DesiredState => ({
    loaded: loaded.map(path => resolve(dataDir, String(path))),
    off: off.map(String),
    only: Object.fromEntries(Object.entries(only).map(([name, list]) => [name, list.map(String)])),
    isolated: Object.fromEntries(
      Object.entries(isolated).map(([name, { memory_mb, stall_ms }]) => [
        name,
        { memory_mb: Number(memory_mb), stall_ms: Number(stall_ms) },
      ]),
    ),
  })
export const readDesiredState = (dataDir: string): DesiredState =>
  readJson<DesiredState>(fileIn(dataDir), none, shaped(dataDir))

export function createDesiredState({
  dataDir,
  storage,
}: {
  readonly dataDir: string
  readonly storage: StorageEngine
}) {
  const keep = (choices: DesiredState) =>
    writeJsonAtomic(fileIn(dataDir), { ...choices, loaded: choices.loaded.map(placed(dataDir)) })
  const edited = (
    { loaded, off, only, isolated }: DesiredState,
    edit: (choices: Editable) => void,
  ): DesiredState => {
    const next: Editable = {
      loaded: new Set(loaded),
      off: new Set(off),
      only: new Map(Object.entries(only)),
      isolated: new Map(Object.entries(isolated)),
    }
    edit(next)
    return {
      loaded: [...next.loaded].sort(),
      off: [...next.off].sort(),
      only: Object.fromEntries(next.only),
      isolated: Object.fromEntries(next.isolated),
    }
  }
  const understood = ({ choices }: Shared): DesiredState =>
    shaped(dataDir)(JSON.parse(choices) as DesiredState)
  const written = (choices: DesiredState): string =>
    JSON.stringify({ ...choices, loaded: choices.loaded.map(placed(dataDir)) })
  let known = -1

  /**
   * Edits the document and answers the result. Edits of other processes at the same time are kept.
   */
  const share = async (edit: (choices: Editable) => void): Promise<Shared> => {
    for (;;) {
      const before = await storage.get(Kept, id)
      if (!before) {
        const first: Shared = {
          id,
          changes: 1,
          choices: written(edited(readDesiredState(dataDir), edit)),
        }
        const isFirst = await storage.insert(Kept, first).then(
          () => true,
          (error: unknown) => {
            if (hasCode(error, 'DUPLICATE')) return false
            throw error
          },
        )
        if (isFirst) return first
      } else {
        const after = await storage.update(
          Kept,
          id,
          { set: { choices: written(edited(understood(before), edit)) }, inc: { changes: 1 } },
          { if: { changes: before.changes } },
        )
        if (after) return after
      }
    }
  }
  return {
    /** Other processes may have chosen, too. */
    shared: !storage.exclusive,
    read: () => readDesiredState(dataDir),
    async edit(edit: (choices: Editable) => void): Promise<void> {
      if (storage.exclusive) return keep(edited(readDesiredState(dataDir), edit))
      const { changes, choices } = await share(edit)
      known = changes
      keep(understood({ id, changes, choices }))
    },
    /** Reads what other processes chose; true when something is new. */
    async refresh(): Promise<boolean> {
      if (storage.exclusive) return false
      await storage.define(Kept)
      const now = await storage.get(Kept, id)
      if (!now || now.changes === known) return false
      known = now.changes
      keep(understood(now))
      return true
    },
  }
}
export type DesiredStateStore = ReturnType<typeof createDesiredState>
