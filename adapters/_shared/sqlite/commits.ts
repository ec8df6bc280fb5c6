// Group commit: one transaction takes in whatever comes until somebody needs it on disk, so that
// many writes share one fsync.
import type { Database } from './database.ts'

/** A commit follows the end of the one before by at least this, unless nobody asks. */
const windowMs = 3
/**
 * By this where the one before carried so many operations: of whoever comes next, more share its
 * fsync and its pages than wait longer for it.
 */
const crowdedWindowMs = 6
const crowdedOperations = 32
/** Nothing stays off the disk for longer, asked for or not. */
const lingerMs = 50

export type Commits = {
  /** Opens the transaction before the first write. */
  begin(): void
  /** Everything up to this operation was run. */
  ran(through: number): void
  /** Somebody waits for what was run to be on disk. */
  ask(): void
  commit(): void
  /** Forgets the transaction: what was applied in it is lost. */
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
  let due = 0
  let carried = 0

  function wait(ms: number): void {
    const at = performance.now() + ms
    if (timer && due <= at) return
    clearTimeout(timer)
    due = at
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
    // Full and I/O errors may have rolled back already.
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
