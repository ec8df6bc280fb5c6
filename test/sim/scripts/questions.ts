// Runs that ask their user.
import { ends, type Script } from './script.ts'

export const beside: Script = {
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

export const question: Script = {
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

export const cancelledWaiting: Script = {
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
