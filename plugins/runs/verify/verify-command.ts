// `verify` checks the invariants of every run and of every organisation's ledger, on a running
// installation.
import type { Entry, Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { LoggedEvent, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { isTerminal } from '../journal/outcome.ts'
import { partOf } from '../journal/hold.ts'
import type { Texts } from '../journal/texts.ts'
import { createLedgerCheck, verifyAnswer, verifyRun } from './verify.ts'

export const verifyReason = 'verify: every run of every organisation'
/** Violations that are listed. All are counted. */
const toldMax = 100

export type Verified = {
  readonly ok: boolean
  readonly runs: number
  readonly events: number
  readonly organisations: number
  readonly entries: number
  readonly violations: number
  readonly told: readonly {
    readonly org_id: string
    readonly run_id: string | null
    readonly what: string
  }[]
}

type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  billing: Ledger
  clock: Clock
  config: RunsConfig
  texts: Texts
}

export async function verifyInstallation({
  store,
  eventlog,
  billing,
  clock,
  config,
  texts,
}: Deps): Promise<Verified> {
  const told: { org_id: string; run_id: string | null; what: string }[] = []
  const organisations = new Set<string>()
  /** Runs whose logs have ended, and whose documents have not. */
  const open: { run: Run; since: number }[] = []
  let runs = 0
  let events = 0
  let entries = 0
  let violations = 0
  const note = (orgId: string, runId: string | null, bad: readonly string[]) => {
    violations += bad.length
    told.push(
      ...bad
        .slice(0, Math.max(0, toldMax - told.length))
        .map(what => ({ org_id: orgId, run_id: runId, what })),
    )
  }
  const check = async (run: Run): Promise<void> => {
    const log: LoggedEvent[] = []
    const stream = streamOf(run.id)
    const own = eventlog.tenant(run)
    for (let after = 0; ; ) {
      const page = await own.read(stream, { after, limit: 1000 })
      log.push(...page)
      if (page.length === 0) break
      after = page.at(-1)!.seq
    }
    // The log is read first: the ledger already holds everything that the log says of it.
    const ofs = [
      run.id,
      ...log
        .filter(({ type }) => type === 'holding@1')
        .map(({ data }) => partOf(run.id, (data as { part: string }).part)),
    ]
    const found = await Promise.all(
      ofs.flatMap(of => [`hold:${of}`, `end:${of}`]).map(key => billing.entry(run.orgId, key)),
    )
    runs++
    events += log.length
    organisations.add(run.orgId)
    if (run.phase === 'closed')
      note(run.orgId, run.id, verifyAnswer(log, (await texts.whole(run)).answer ?? ''))
    else if (log.some(isTerminal)) open.push({ run, since: clock.monotonic() })
    note(
      run.orgId,
      run.id,
      verifyRun(
        run.id,
        log,
        found.filter((entry): entry is Entry => entry !== undefined),
      ),
    )
  }
  for (let after: string | undefined; ; ) {
    const page = await store
      .system(verifyReason)
      .find(Runs, { limit: 200, ...(after === undefined ? {} : { after }) })
    for (const run of page.items) await check(run)
    if (page.next === undefined) break
    after = page.next
  }
  for (const orgId of organisations) {
    const ledger = createLedgerCheck()
    for (let after = 0; ; ) {
      const page = await billing.entries(orgId, { after, limit: 1000 })
      page.forEach(ledger.feed)
      entries += page.length
      if (page.length === 0) break
      after = page.at(-1)!.seq
    }
    note(orgId, null, ledger.bad)
  }
  // A document is closed right after its log. One that is still open after the time of a lease is
  // never closed.
  for (const { run, since } of open) {
    await clock.sleep(Math.max(0, since + config.lease_ms - clock.monotonic()))
    const now = await store.tenant(run).get(Runs, run.id)
    if (now && now.phase !== 'closed')
      note(run.orgId, run.id, ['it ended, and it was never closed'])
  }
  return {
    ok: violations === 0,
    runs,
    events,
    organisations: organisations.size,
    entries,
    violations,
    told,
  }
}
