// What happens in a simulated world: what the model says, what the clients do, and what must have
// come of it.
import { hasCode, isFault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import type { Process } from '../support/sim.ts'
import type { Behaviour } from './model.ts'
import { caller, type SimulatedCluster, type ClusterOptions } from './simulated-cluster.ts'

type Started = { readonly run_id: string; readonly session_id: string }
export type Actor = ReturnType<typeof actorOn>
export type Script = {
  readonly name: string
  readonly behave: Behaviour
  readonly supports?: ClusterOptions['supports']
  readonly credits?: number
  /** Takes long: a fault at each of its moments is tried by `npm run simulate` alone. */
  readonly isLong?: true
  /** Settings of the run plugin, beside those of the stage. */
  readonly env?: Readonly<Record<string, string>>
  play(actor: Actor): Promise<void>
  /** Of each run, in the order of their starts: the text of its readers, and how it ends. */
  readonly runs: readonly {
    readonly text?: string
    readonly ends: 'done' | 'cancelled' | 'error' | 'any'
    /** Calls of the tools in the world, at the most and where nothing went wrong. */
    readonly sends?: number
    /** Calls of `post`, which may happen once. */
    readonly posts?: number
    readonly pays?: number
    /** The code of its error. */
    readonly code?: string
  }[]
  /**
   * Processes that may end by what the script does, at the most, where nothing else goes wrong: two
   * that the journal knows of, and those that ended before it did.
   */
  readonly deaths?: number
}

/**
 * One client: it starts runs, reads them with its cursor, answers and cancels. What it saw is kept,
 * to be compared.
 */
export function actorOn(cluster: SimulatedCluster, client: Process) {
  const starts: Started[] = []
  const seen = new Map<string, LoggedEvent[]>()
  const broken: string[] = []
  const look = async (runId: string): Promise<readonly LoggedEvent[]> => {
    const shown = (await cluster.visible(runId)).filter(({ hidden }) => !hidden)
    const before = seen.get(runId) ?? []
    if (before.some((event, i) => JSON.stringify(event) !== JSON.stringify(shown[i])))
      broken.push(`run ${runId}: what was read before is not what is read now`)
    seen.set(runId, shown)
    return shown
  }
  return {
    starts,
    seen,
    broken,
    async start(
      message: string,
      more: { session_id?: string; plan?: boolean } = {},
    ): Promise<Started> {
      const key = `key-${starts.length}`
      const request = {
        message,
        app_name: 'main',
        kb_enhance: false,
        plan: false,
        reasoning: false,
        client_tz: 'UTC',
        ...more,
        idempotency_key: key,
      }
      const started = await cluster.ask(client, one => one.runs.start(caller, request, undefined))
      starts.push(started)
      return started
    },
    look,
    /** Reads until the event comes, or the run has ended. */
    async until(runId: string, types: readonly string[]): Promise<LoggedEvent> {
      for (;;) {
        const shown = await look(runId)
        const found =
          shown.find(({ type }) => types.includes(type)) ??
          shown.find(({ type }) => type === 'done' || type === 'error')
        if (found) return found
        await client.clock.sleep(15)
      }
    },
    respond: (runId: string, questionId: string, answer: string) =>
      cluster
        .ask(client, ({ runs }) => runs.respond(caller, runId, { question_id: questionId, answer }))
        .then(
          () => 'taken',
          (error: unknown) => {
            if (isFault(error) && error.status === 409) return 'closed'
            throw error
          },
        ),
    cancel: (runId: string) => cluster.ask(client, ({ runs }) => runs.cancel(caller, runId)),
    resumeQueue: (sessionId: string) =>
      cluster.ask(client, ({ runs }) =>
        runs.resumeQueue(caller, sessionId).catch((error: unknown) => {
          if (!hasCode(error, 'SESSION_BUSY')) throw error
        }),
      ),
    drain: () => cluster.drain(client),
    sleep: (ms: number) => client.clock.sleep(ms),
  }
}

const long = Array.from({ length: 60 }, (_, n) => `sentence ${n} `).join('')
const ends = ['done', 'error'] as const

const plain: Script = {
  name: 'plain answer',
  behave: () => ({
    text: 'The quick brown fox jumps over the lazy dog, and then it runs away again.',
  }),
  runs: [
    {
      text: 'The quick brown fox jumps over the lazy dog, and then it runs away again.',
      ends: 'done',
    },
  ],
  async play(actor) {
    await actor.until((await actor.start('hello')).run_id, ends)
  },
}

const unaided: Script = {
  ...plain,
  name: 'long answer without prefill',
  supports: { prefill: false },
  behave: () => ({ text: long }),
  runs: [{ text: long, ends: 'done' }],
}

const broken: Script = {
  ...plain,
  name: 'provider breaks off twice',
  behave: (_, asked) => ({ text: long, ...(asked <= 2 ? { breaksAt: asked * 3 } : {}) }),
  runs: [{ text: long, ends: 'done' }],
}

const tools: Script = {
  ...plain,
  name: 'tools',
  runs: [{ text: 'I will see.\n\nAll is sent.', ends: 'done', sends: 1, pays: 1 }],
  // Interrupted after some of its calls, a model asks for the others when it sees the results.
  behave: ({ results }) =>
    results.length === 3
      ? { text: 'All is sent.' }
      : {
          text: results.length === 0 ? 'I will see.' : '',
          calls: (
            [
              ['look', 'x'],
              ['pay', 'y'],
              ['send', 'z'],
            ] as const
          ).slice(results.length),
        },
}

const again: Script = {
  ...unaided,
  isLong: true,
  name: 'an answer that is told to go on begins again',
  behave: (_, asked) => ({
    text: long.slice(0, 400),
    again: true,
    ...(asked === 1 ? { breaksAt: 7 } : {}),
  }),
  runs: [{ text: long.slice(0, 400), ends: 'done' }],
}

// The first try leaves no mark, the second begins again and marks: what is held back at the seam
// must not lie behind a mark.
const seam: Script = {
  ...plain,
  name: 'resumed behind a seam',
  supports: { prefill: false, resume: true },
  runs: [{ text: long.slice(0, 400), ends: 'done' }],
  behave: (_, asked) => ({
    text: long.slice(0, 400),
    ...(asked === 1
      ? { breaksAt: 3 }
      : { marks: true, ...(asked === 2 ? { breaksAt: 4, again: true } : {}) }),
  }),
}

const many: Script = {
  ...plain,
  isLong: true,
  name: 'many results at once',
  runs: [{ text: 'All is read.', ends: 'done' }],
  behave: ({ results }) =>
    results.length > 0
      ? { text: 'All is read.' }
      : { calls: Array.from({ length: 5 }, (_, n) => ['dump', `${n}`] as const) },
}

const lengthy: Script = {
  ...plain,
  isLong: true,
  name: 'a long answer',
  behave: () => ({ text: `${long}${long}${long}` }),
  runs: [{ text: `${long}${long}${long}`, ends: 'done' }],
}

const beside: Script = {
  name: 'answer while a tool is at work',
  runs: [{ text: 'Thank you.', ends: 'done', posts: 1 }],
  behave: ({ results }) =>
    results.length === 2
      ? { text: 'Thank you.' }
      : {
          calls: (
            [
              ['ask', 'Shall I?'],
              ['post', 'it'],
            ] as const
          ).slice(results.length),
        },
  async play(actor) {
    const { run_id: runId } = await actor.start('ask me')
    const asked = await actor.until(runId, ['user_choice'])
    if (asked.type === 'user_choice')
      await actor.respond(runId, (asked.data as { question_id: string }).question_id, 'a')
    await actor.until(runId, ends)
  },
}

const fatal: Script = {
  ...plain,
  isLong: true,
  name: 'a tool that kills its process',
  env: { RUNS_DEATHS_MAX: '2' },
  runs: [{ ends: 'error', code: 'CALL_FATAL' }],
  deaths: 2,
  behave: () => ({ text: 'I try.', calls: [['die', 'x']] }),
}
const fatalModel: Script = {
  ...fatal,
  name: 'a model that kills its process',
  deaths: 4,
  behave: () => ({ text: long.slice(0, 200), kills: 0 }),
}

const question: Script = {
  name: 'question to the user',
  runs: [{ text: 'Thank you.', ends: 'done', sends: 1 }],
  behave: ({ results }) =>
    results.length === 0
      ? { calls: [['ask', 'Shall I?']] }
      : results.length === 1
        ? { calls: [['send', 'it']] }
        : { text: 'Thank you.' },
  async play(actor) {
    const { run_id: runId } = await actor.start('ask me')
    const asked = await actor.until(runId, ['user_choice'])
    if (asked.type !== 'user_choice') return
    const id = (asked.data as { question_id: string }).question_id
    const [first, second] = await Promise.all([
      actor.respond(runId, id, 'a'),
      actor.respond(runId, id, 'b'),
    ])
    if (first === 'taken' && second === 'taken')
      actor.broken.push('two answers were taken for one question')
    await actor.until(runId, ends)
    const answers = (await actor.look(runId)).filter(({ type }) => type === 'choice_answer')
    if (answers.length !== 1) actor.broken.push(`${answers.length} answers stand in the log`)
  },
}

const cancelled: Script = {
  name: 'cancel in mid-stream',
  behave: () => ({ text: long }),
  runs: [{ ends: 'any' }],
  async play(actor) {
    const { run_id: runId } = await actor.start('write on')
    await actor.until(runId, ['token'])
    await actor.cancel(runId)
    await actor.until(runId, ends)
  },
}

const cancelledWaiting: Script = {
  ...question,
  name: 'cancel of a waiting run',
  runs: [{ ends: 'cancelled' }],
  async play(actor) {
    const { run_id: runId } = await actor.start('ask me')
    await actor.until(runId, ['user_choice'])
    await actor.cancel(runId)
    await actor.until(runId, ends)
  },
}

const queue: Script = {
  name: 'queue of three in one session',
  behave: ({ said }) => ({ text: `You said ${said}.` }),
  runs: ['one', 'two', 'three'].map(said => ({ text: `You said ${said}.`, ends: 'done' as const })),
  async play(actor) {
    const { run_id: first, session_id } = await actor.start('one')
    const { run_id: second } = await actor.start('two', { session_id })
    const { run_id: third } = await actor.start('three', { session_id })
    for (const runId of [first, second, third]) await actor.until(runId, ends)
  },
}

const slow: Script = {
  name: 'queue of two slow answers',
  behave: ({ said }) => ({ text: `${said} ${long.slice(0, 300)}`, pauseMs: 200 }),
  runs: ['one', 'two'].map(said => ({
    text: `${said} ${long.slice(0, 300)}`,
    ends: 'done' as const,
  })),
  async play(actor) {
    const { run_id: first, session_id } = await actor.start('one')
    const { run_id: second } = await actor.start('two', { session_id })
    for (const runId of [first, second]) await actor.until(runId, ends)
  },
}

const paused: Script = {
  name: 'queue paused by a failure',
  runs: [{ ends: 'error' }, { text: 'Fine.', ends: 'done' }, { ends: 'any' }],
  behave: ({ said }) => (said === 'fail' ? { text: 'no', breaksAt: 0 } : { text: 'Fine.' }),
  async play(actor) {
    const { run_id: first, session_id } = await actor.start('fail')
    const { run_id: second } = await actor.start('second', { session_id })
    const { run_id: third } = await actor.start('third', { session_id })
    await actor.until(first, ends)
    await actor.cancel(third)
    await actor.until(third, ends)
    // The pause comes a moment after the error: until it has come there is nothing to resume.
    for (
      let n = 0;
      n < 100 && !(await actor.look(second)).some(({ type }) => type === 'done');
      n++
    ) {
      await actor.resumeQueue(session_id)
      await actor.sleep(50)
    }
    await actor.until(second, ends)
  },
}

const outgrown: Script = {
  ...plain,
  name: 'hold outgrown',
  runs: [{ text: 'Done.', ends: 'done', pays: 3 }],
  behave: ({ results }) =>
    results.length < 3 ? { calls: [['pay', `${results.length}`]] } : { text: 'Done.' },
}

const bankrupt: Script = {
  ...outgrown,
  name: 'hold outgrown and nothing left',
  credits: 1,
  runs: [{ ends: 'error' }],
}

const outgrownCancelled: Script = {
  ...outgrown,
  name: 'cancel of a run that outgrew its hold',
  runs: [{ ends: 'any', pays: 3 }],
  async play(actor) {
    const { run_id: runId } = await actor.start('pay and pay')
    await actor.until(runId, ['tool_result'])
    await actor.cancel(runId)
    await actor.until(runId, ends)
  },
}

const plan: Script = {
  name: 'plan mode',
  runs: [{ text: 'The answer.', ends: 'done', sends: 1 }],
  behave({ said, results, system }) {
    if (system.includes('Write a numbered plan'))
      return { text: said.includes('failed') ? '1. Another way' : '1. Look around\n2. Impossible' }
    if (said.includes('Impossible') && said.includes('Carry out step 2'))
      return { calls: [['report_failure', 'It cannot be done.']] }
    if (said.includes('Carry out step 1'))
      return results.length === 0 ? { calls: [['send', 'a']] } : { text: 'Looked.' }
    if (said.includes('Carry out')) return { text: 'Went another way.' }
    return { text: 'The answer.' }
  },
  async play(actor) {
    await actor.until((await actor.start('do it', { plan: true })).run_id, ends)
  },
}

const drained: Script = {
  ...tools,
  name: 'hand-over at a drain',
  async play(actor) {
    const { run_id: runId } = await actor.start('go')
    await actor.until(runId, ['token'])
    await actor.drain()
    await actor.until(runId, ends)
  },
}

export const scripts: readonly Script[] = [
  plain,
  unaided,
  broken,
  again,
  seam,
  tools,
  many,
  lengthy,
  beside,
  fatal,
  fatalModel,
  question,
  cancelled,
  cancelledWaiting,
  queue,
  slow,
  paused,
  outgrown,
  bankrupt,
  outgrownCancelled,
  plan,
  drained,
]
