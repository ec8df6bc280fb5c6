// Runs that need more credits than were held at first.
import { plain } from './answers.ts'
import { ends, type Script } from './script.ts'

export const outgrown: Script = {
  ...plain,
  name: 'hold outgrown',
  runs: [{ text: 'Done.', ends: 'done', pays: 3 }],
  behave: ({ results }) =>
    results.length < 3 ? { calls: [['pay', `${results.length}`]] } : { text: 'Done.' },
}

export const bankrupt: Script = {
  ...outgrown,
  name: 'hold outgrown and nothing left',
  credits: 1,
  runs: [{ ends: 'error' }],
}

export const outgrownCancelled: Script = {
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
