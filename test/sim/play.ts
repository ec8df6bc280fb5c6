// Plays one script in one world and says what does not hold afterwards.
import { createLedgerCheck, verifyRun } from '../../plugins/runs/verify/verify.ts'
import type { Run } from '../../plugins/runs/collections.ts'
import { foldOne } from '../../plugins/runs/journal/fold.ts'
import { answerOf, emptyState } from '../../plugins/runs/journal/state.ts'
import { hasCode } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import { seeded } from '#adapters/clock/manual/seeded.ts'
import type { Choose, Moment, Process } from '../support/sim.ts'
import { actorOn, type Script } from './scripts.ts'
import {
  caller,
  createSimulatedCluster,
  sweepMs,
  type Kind,
  type SimulatedCluster,
} from './simulated-cluster.ts'

export type Played = {
  readonly bad: string[]
  readonly moments: readonly Moment[]
  /** One line for each fault. */
  readonly trace: readonly string[]
  readonly steps: number
}

/** What a client shows that folds by step, attempt and keep: the same. */
function foldedOf(log: readonly LoggedEvent[]): string {
  const texts: string[] = []
  for (const { type, data } of log) {
    const { step, text, keep } = data as { step: number; text: string; keep: number }
    if (type === 'token') texts[step] = (texts[step] ?? '') + text
    if (type === 'superseded') texts[step] = (texts[step] ?? '').slice(0, keep)
  }
  return texts.join('')
}
/** The answer of a client that knows `token`, `done` and `error` alone. */
export const textOf = (log: readonly LoggedEvent[]): string =>
  log
    .flatMap(({ type, data }) => (type === 'token' ? [(data as { text: string }).text] : []))
    .join('')

/** The model answers by everything that was said before, whoever drove the runs before this one. */
async function unheard(cluster: SimulatedCluster, runs: readonly Run[]): Promise<string[]> {
  const bad: string[] = []
  const answers = new Map(
    await Promise.all(
      runs.map(
        async ({ id }) =>
          [id, answerOf((await cluster.log(id)).reduce(foldOne, emptyState()))] as const,
      ),
    ),
  )
  for (const { said, past } of cluster.heard) {
    const [run, other] = runs.filter(({ request }) => request.message === said)
    if (!run || other) continue
    const before = runs
      .filter(
        ({ id, sessionId, status }) =>
          sessionId === run.sessionId && id < run.id && status === 'done',
      )
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .flatMap(({ id, request }) => [request.message, answers.get(id)!])
    if (JSON.stringify(past) !== JSON.stringify(before))
      bad.push(
        `"${said}" was answered in the light of ${JSON.stringify(past).slice(0, 200)}, not ` +
          `of ${JSON.stringify(before).slice(0, 200)}`,
      )
  }
  return bad
}

async function judge(
  cluster: SimulatedCluster,
  script: Script,
  actor: ReturnType<typeof actorOn>,
): Promise<string[]> {
  const bad = [...actor.broken, ...cluster.logged]
  const entries = await cluster.ledger()
  const runs = await cluster.runs()
  const check = createLedgerCheck()
  entries.forEach(check.feed)
  bad.push(...check.bad)
  bad.push(...(await unheard(cluster, runs)))
  if (check.sums().held !== 0) bad.push(`${check.sums().held} credits are still held`)
  if (runs.length !== actor.starts.length)
    bad.push(`${actor.starts.length} runs were started, there are ${runs.length}`)
  for (const { phase, id } of runs) if (phase !== 'closed') bad.push(`run ${id} never closed`)
  for (const session of await cluster.sessions())
    if (session.queued > 0 || session.queue.length > 0)
      bad.push(
        `session ${session.id} has a queue of ${session.queue.length}, said to be ` +
          `${session.queued}`,
      )
  const isCalm = cluster.world.trace.length === 0
  let sends = 0
  let pays = 0
  for (const [i, { run_id: id }] of actor.starts.entries()) {
    const log = await cluster.log(id)
    const expected = script.runs[i]!
    const last = log.at(-1)
    bad.push(
      ...verifyRun(
        id,
        log,
        entries.filter(({ key }) => key.includes(id)),
      ).map(one => `run ${i}: ${one}`),
    )
    const ended =
      last?.type === 'error'
        ? 'error'
        : String((last?.data as { status?: string } | undefined)?.status)
    if (
      expected.code !== undefined &&
      (last?.data as { code?: string } | undefined)?.code !== expected.code
    )
      bad.push(`run ${i} ended with ${JSON.stringify(last?.data)}, not with ${expected.code}`)
    if (expected.ends !== 'any' && ended !== expected.ends)
      bad.push(`run ${i} ended as ${ended}, not as ${expected.ends}: ${JSON.stringify(last?.data)}`)
    if (expected.text !== undefined && textOf(log) !== expected.text)
      bad.push(`run ${i} says ${JSON.stringify(textOf(log))}`)
    if (foldedOf(log) !== textOf(log))
      bad.push(
        `run ${i} is ${JSON.stringify(foldedOf(log))} to who folds, ` +
          `${JSON.stringify(textOf(log))} to who does not`,
      )
    const { terminal, steps } = log.reduce(foldOne, emptyState())
    const run = runs.find(one => one.id === id)
    const kept = run && (await cluster.answer(run))
    if (run && kept !== textOf(log))
      bad.push(
        `run ${i} is kept with the answer ${JSON.stringify(kept)}, its readers saw ` +
          `${JSON.stringify(textOf(log))}`,
      )
    if (run && terminal && run.status !== (terminal.type === 'error' ? 'failed' : terminal.status))
      bad.push(`run ${i} stands as ${run.status}, its log ends with ${terminal.type}`)
    for (const { call, outcome, begun } of steps.flatMap(step => step.calls)) {
      if ((call.name === 'send' || call.name === 'post') && begun) sends++
      if (
        isCalm &&
        outcome?.status === 'unknown' &&
        terminal?.type === 'done' &&
        terminal.status === 'done'
      )
        bad.push(`run ${i}: nothing went wrong, and the call ${call.name} is told as unknown`)
      if (call.name === 'pay' && outcome?.status === 'ok') pays++
      // What the model was told was done, was done; what it was told is unknown was not done twice.
      if (call.name === 'send' && outcome?.status === 'ok' && cluster.effects.once.length === 0)
        bad.push(`run ${i}: a call was told as done that never was`)
    }
  }
  const wanted = {
    sends: script.runs.reduce((sum, run) => sum + (run.sends ?? 0) + (run.posts ?? 0), 0),
    pays: script.runs.reduce((sum, run) => sum + (run.pays ?? 0), 0),
  }
  if (
    cluster.effects.once.length > wanted.sends ||
    new Set(cluster.effects.once).size !== cluster.effects.once.length
  )
    bad.push(`what may happen once happened ${cluster.effects.once.length} times`)
  if (new Set(cluster.effects.keyed).size > Math.max(wanted.pays, pays))
    bad.push(`${new Set(cluster.effects.keyed).size} different payments were made`)
  if (isCalm && script.deaths !== undefined && cluster.deaths() > script.deaths)
    bad.push(`${cluster.deaths()} processes ended`)
  if (
    script.runs.every(run => run.ends === 'done') &&
    (sends !== wanted.sends || pays !== wanted.pays)
  )
    bad.push(`${sends} sends and ${pays} payments stand in the log`)
  return bad
}

type Playing = { readonly choose: Choose; readonly seed?: number; readonly kind?: Kind }
const optionsOf = ({ behave, supports, credits, env }: Script) => ({
  behave,
  ...(env ? { env } : {}),
  ...(supports ? { supports } : {}),
  ...(credits === undefined ? {} : { credits }),
})

/**
 * A client asks until the session is gone. Admissions that come back from the dead may hold it for
 * a moment; an earlier try whose answer came too late may have removed it.
 */
async function removed(cluster: SimulatedCluster, process: Process, id: string): Promise<string[]> {
  for (let tries = 0; tries < 20; tries++) {
    const error = await cluster
      .ask(process, ({ sessions }) => sessions.remove(caller, id))
      .then(
        () => undefined,
        (failed: Error) => failed,
      )
    if (!error || hasCode(error, 'NOT_FOUND')) return []
    if (!hasCode(error, 'SESSION_BUSY'))
      return [`session ${id} cannot be removed: ${String(error)}`]
    await process.clock.sleep(sweepMs)
  }
  return [`session ${id} stays busy`]
}

export async function play(
  script: Script,
  { choose, seed = 1, kind = 'drivers' }: Playing,
): Promise<Played & { readonly cluster: SimulatedCluster }> {
  const cluster = await createSimulatedCluster({ choose, seed, kind, ...optionsOf(script) })
  let bad: string[] = []
  const ended = await cluster.act(async process => {
    const actor = actorOn(cluster, process)
    await script.play(actor)
    await cluster.closed(process)
    bad = await judge(cluster, script, actor)
    // A session may be left with a run that has ended, by an admission that came back from the
    // dead: it must not be busy to whoever comes next.
    for (const { id, active } of await cluster.sessions())
      if (active) bad.push(...(await removed(cluster, process, id)))
  })
  if (ended !== undefined) bad = [ended]
  const { trace, moments } = cluster.world
  return { bad, cluster, trace, moments, steps: cluster.world.steps() }
}

/**
 * Everything dies after a run's terminal event, which the log then lacks: whoever starts on what is
 * left must come to the same end, and charge nothing again.
 */
export async function coldStart(script: Script, withheld: number): Promise<string[]> {
  const calm = faultsAt(new Map())
  const { cluster: before, bad } = await play(script, { choose: calm })
  const runs = await before.runs()
  const ledger = await before.ledger()
  const logs = new Map<string, LoggedEvent[]>()
  for (const run of runs) logs.set(run.id, await before.reopen(run, withheld))
  const cluster = await createSimulatedCluster({
    choose: calm,
    disk: before.disk,
    ...optionsOf(script),
  })
  const ended = await cluster.act(process => cluster.closed(process))
  if (ended !== undefined) return [...bad, ended]
  for (const [i, { id }] of runs.entries()) {
    const first = logs.get(id)!
    const second = (await cluster.log(id)).filter(({ type }) => type !== 'took@1')
    const told = ({ type, data }: LoggedEvent) => `${type} ${JSON.stringify(data)}`
    if (
      JSON.stringify(second.map(told)) !==
      JSON.stringify(first.filter(({ type }) => type !== 'took@1').map(told))
    )
      bad.push(`run ${i} ends otherwise: ${told(second.at(-1)!)}, it was ${told(first.at(-1)!)}`)
  }
  if (JSON.stringify(await cluster.ledger()) !== JSON.stringify(ledger))
    bad.push('the ledger moved')
  return bad
}

/** Always the first of what may go on, or (with a seed) any; faults at the given moments. */
export function faultsAt(faults: ReadonlyMap<number, number>, order?: number): Choose {
  const random = order === undefined ? undefined : seeded(order)
  let moment = 0
  return (kind, options) =>
    kind === 'fault'
      ? (faults.get(moment++) ?? 0)
      : random && kind !== 'survive'
        ? Math.floor(random() * options)
        : kind === 'survive'
          ? Math.floor(options / 2)
          : 0
}
/** Everything by chance; a fault at about one moment in `every`, at most `most` of them. */
export function byChance(seed: number, every = 40, most = 4): Choose {
  const random = seeded(seed)
  let left = most
  return (kind, options) => {
    if (kind !== 'fault') return Math.floor(random() * options)
    if (left === 0 || random() * every >= 1) return 0
    left--
    return 1 + Math.floor(random() * (options - 1))
  }
}
