// Runs that call tools, one after another or in the steps of a plan.
import { long, plain } from './answers.ts'
import { ends, type Script } from './script.ts'

export const tools: Script = {
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

export const many: Script = {
  ...plain,
  isLong: true,
  name: 'many results at once',
  runs: [{ text: 'All is read.', ends: 'done' }],
  behave: ({ results }) =>
    results.length > 0
      ? { text: 'All is read.' }
      : { calls: Array.from({ length: 5 }, (_, n) => ['dump', `${n}`] as const) },
}

export const fatal: Script = {
  ...plain,
  isLong: true,
  name: 'a tool that kills its process',
  env: { RUNS_DEATHS_MAX: '2' },
  runs: [{ ends: 'error', code: 'CALL_FATAL' }],
  deaths: 2,
  behave: () => ({ text: 'I try.', calls: [['die', 'x']] }),
}

export const fatalModel: Script = {
  ...fatal,
  name: 'a model that kills its process',
  deaths: 4,
  behave: () => ({ text: long.slice(0, 200), kills: 0 }),
}

export const plan: Script = {
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

export const drained: Script = {
  ...tools,
  name: 'hand-over at a drain',
  async play(actor) {
    const { run_id: runId } = await actor.start('go')
    await actor.until(runId, ['token'])
    await actor.drain()
    await actor.until(runId, ends)
  },
}
