// Group commit: one transaction collects writes until a caller needs them on disk, so that many
// writes share one fsync.
import type { Database } from './database.ts'

/** The shortest pause between two commits, in milliseconds, unless nobody asks. */
const windowMs = 3
/**
 * The pause after a commit that carried many operations. More writers then share the next fsync and
 * its pages, which saves more than the wait costs.
 */
const crowdedWindowMs = 6
const crowdedOperations = 32
/** The longest time in milliseconds until a write is on disk. */
const lingerMs = 50

export type Commits = {
  /** Opens the transaction before the first write. */
  begin(): void
  /** Everything up to this operation was run. */
  ran(through: number): void
  /** A caller waits until the operations that ran are on disk. */
  ask(): void
  commit(): void
  /** Drops the transaction; its applied writes are lost. */
  lose(): void
  /** Changes with every loss. */
  epoch(): number
  settled(): number
  readonly writing: boolean
}

type Hooks = { readonly onSettled: () => void; readonly onLoss: () => void }

export function createCommits(db: Database, { onSettled, onLoss }: Hooks): Commits {
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  let [writing, epoch, seen, settled, lastEnd, wanted] = [false, 0, 0, 0, 0, false]
  let timer: NodeJS.Timeout | undefined
  let commitAt = 0
  let carried = 0

  function wait(ms: number): void {
    const at = performance.now() + ms
    if (timer && commitAt <= at) return
    clearTimeout(timer)
    commitAt = at
    timer = setTimeout(finish, ms)
  }
  function done(): void {
    clearTimeout(timer)
    timer = undefined
    writing = wanted = false
    lastEnd = performance.now()
    carried = seen - settled
    settled = seen
  }
  function lose(): void {
    // After a full disk or an I/O error SQLite may have rolled back already.
    if (db.raw.isTransaction)
      try {
        db.exec('ROLLBACK')
      } catch {
        /* The connection has nothing open then, which is what was wanted. */
      }
    epoch++
    done()
    onLoss()
  }
  function finish(): void {
    if (!writing) return
    try {
      commit.run()
    } catch {
      lose()
      return onSettled()
    }
    done()
    onSettled()
  }

  return {
    begin() {
      if (writing) return
      begin.run()
      writing = true
      wait(lingerMs)
    },
    ran(through) {
      seen = through
      if (!writing) settled = seen
    },
    ask() {
      if (!writing || wanted) return
      wanted = true
      const passed = performance.now() - lastEnd
      const least = carried < crowdedOperations ? windowMs : crowdedWindowMs
      if (passed >= least) finish()
      else wait(least - passed)
    },
    commit: finish,
    lose,
    epoch: () => epoch,
    settled: () => settled,
    get writing() {
      return writing
    },
  }
}
