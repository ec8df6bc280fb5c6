// Runs that wait for one another in one session.
import { long } from './answers.ts'
import { ends, type Script } from './script.ts'

export const queue: Script = {
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

export const slow: Script = {
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

export const paused: Script = {
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
