// Answers: as they come, broken off, and cancelled.
import { ends, type Script } from './script.ts'

export const long = Array.from({ length: 60 }, (_, n) => `sentence ${n} `).join('')

export const plain: Script = {
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

export const unaided: Script = {
  ...plain,
  name: 'long answer without prefill',
  supports: { prefill: false },
  behave: () => ({ text: long }),
  runs: [{ text: long, ends: 'done' }],
}

export const broken: Script = {
  ...plain,
  name: 'provider breaks off twice',
  behave: (_, asked) => ({ text: long, ...(asked <= 2 ? { breaksAt: asked * 3 } : {}) }),
  runs: [{ text: long, ends: 'done' }],
}

export const again: Script = {
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
export const seam: Script = {
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

export const lengthy: Script = {
  ...plain,
  isLong: true,
  name: 'a long answer',
  behave: () => ({ text: `${long}${long}${long}` }),
  runs: [{ text: `${long}${long}${long}`, ends: 'done' }],
}

export const cancelled: Script = {
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
