// Checks the invariants of every run, from its log and the ledger alone. Used by the simulation, by
// tests with real processes, and by `verify` on a running installation.
import type { Entry } from '#ports/billing.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import { spanOf } from '../journal/compact.ts'
import { partOf } from '../journal/hold.ts'
import { verifySteps, type Fields, type Violations } from './steps.ts'

export type { Violations }

const terminalTypes = new Set(['done', 'error'])

/**
 * Checks the order of records. Where retention removed the beginning, the first record is not
 * checked.
 */
function verifyOrder(log: readonly LoggedEvent[], bad: Violations): void {
  let epoch = 0
  if (log[0]!.seq === spanOf(log[0]!) && log[0]!.type !== 'took@1')
    bad.push('a driver wrote without having announced itself')
  log.forEach(({ seq, type, data }, i) => {
    if (i > 0 && seq !== log[i - 1]!.seq + spanOf(log[i]!))
      bad.push(`seq ${seq} follows ${log[i - 1]!.seq}`)
    if (type !== 'took@1') return
    const next = (data as Fields)['epoch'] as number
    if (next <= epoch)
      bad.push(`the driver of epoch ${next} took over after that of epoch ${epoch}`)
    epoch = next
  })
}

function verifyEnd(log: readonly LoggedEvent[], bad: Violations): void {
  const of = (...types: string[]) => log.filter(({ type }) => types.includes(type))
  const terminals = of('done', 'error')
  const decided = of('ending@1')
  if (terminals.length > 1) bad.push(`${terminals.length} terminal events`)
  if (decided.length > 1) bad.push('its end was decided twice')
  if (of('usage').length > 1) bad.push('its usage was told twice')
  if (terminals.length === 0) return
  if (!terminalTypes.has(log.at(-1)!.type))
    bad.push(`${log.at(-1)!.type} follows the terminal event`)
  if (decided.length === 0) bad.push('it ended without its end being decided')
  if (of('usage').length === 0) bad.push('it ended without its usage')
  const after = log
    .slice(log.findIndex(({ type }) => type === 'ending@1') + 1)
    .filter(({ type }) => !['took@1', 'usage', 'done', 'error'].includes(type))
  if (after.length > 0) bad.push(`${after[0]!.type} follows the decision of the end`)
}

/** Characters of an answer that earlier versions kept. */
const earlierAnswerChars = 300_000
/** Checks that the stored answer is the text that readers were shown. */
export function verifyAnswer(log: readonly LoggedEvent[], answer: string): Violations {
  const [first] = log
  if (!first || first.seq !== spanOf(first) || first.type === 'copied@1') return []
  // Earlier versions could take shown text back, and recorded it.
  const texts = new Map<number, string>()
  for (const { type, data } of log) {
    const { step, text = '', keep } = data as { step: number; text?: string; keep?: number }
    const shown = texts.get(step) ?? ''
    if (type === 'token') texts.set(step, shown + text)
    if (type === 'superseded') texts.set(step, shown.slice(0, keep))
  }
  const shown = [...texts.values()].join('')
  return shown === answer || (answer.length === earlierAnswerChars && shown.startsWith(answer))
    ? []
    : ['its answer is not what its readers were shown']
}

/** Checks that each hold has one end, and that the credits told are the credits taken. */
function verifyMoney(
  runId: string,
  log: readonly LoggedEvent[],
  entries: readonly Entry[],
  bad: Violations,
): void {
  const ended = terminalTypes.has(log.at(-1)?.type ?? '')
  const byKey = new Map(entries.map(entry => [entry.key, entry]))
  const ofs = [
    runId,
    ...log
      .filter(({ type }) => type === 'holding@1')
      .map(({ data }) => partOf(runId, (data as Fields)['part'] as string)),
  ]
  let taken = 0
  for (const of of ofs) {
    const hold = byKey.get(`hold:${of}`)
    const end = byKey.get(`end:${of}`)
    if (!hold && (end || of === runId)) bad.push(`there is no hold under ${of}`)
    if (end && -end.amount > (hold?.held ?? 0)) bad.push(`more was taken under ${of} than was held`)
    if (hold && end && end.held !== 0 - hold.held)
      bad.push(`the hold under ${of} was not given back whole`)
    if (ended && hold && !end) bad.push(`it ended, but its hold under ${of} stands`)
    taken -= end?.amount ?? 0
  }
  const usage = log.find(({ type }) => type === 'usage')
  if (ended && usage && (usage.data as Fields)['credits'] !== taken)
    bad.push(`${(usage.data as Fields)['credits']} credits were told, ${taken} were taken`)
}

/**
 * `log`: the run's whole stream, hidden records included, or what retention left of it. `entries`:
 * the ledger's entries under this run.
 */
export function verifyRun(
  runId: string,
  log: readonly LoggedEvent[],
  entries: readonly Entry[],
): Violations {
  const bad: Violations = []
  // A copy in a fork was never driven.
  if (log.length === 0 || log[0]!.type === 'copied@1') return bad
  verifyOrder(log, bad)
  verifyEnd(log, bad)
  if (log[0]!.seq === 1) {
    verifySteps(log, bad)
    verifyMoney(runId, log, entries, bad)
  }
  return bad
}

/** Running sums of an organisation's whole ledger, fed page by page. */
export function createLedgerCheck() {
  const bad: Violations = []
  let seq = 0
  let balance = 0
  let held = 0
  return {
    bad,
    feed(entry: Entry): void {
      seq++
      balance += entry.amount
      held += entry.held
      if (entry.seq !== seq) bad.push(`entry ${entry.seq} stands in place ${seq}`)
      if (entry.balanceAfter !== balance || entry.heldAfter !== held)
        bad.push(
          `entry ${entry.seq} says ${entry.balanceAfter} (${entry.heldAfter} held), the ` +
            `sum is ${balance} (${held} held)`,
        )
      if (balance < 0 || held < 0 || held > balance)
        bad.push(`entry ${entry.seq} leaves a balance of ${balance} with ${held} held`)
      seq = entry.seq
    },
    sums: () => ({ balance, held }),
  }
}
