// The runs that are there when something goes wrong: plain ones, some that call tools, some that
// ask, some that plan, some that are cancelled.
import * as assert from 'uvu/assert'
import { sawItWhole } from './checks.ts'
import { textOf, type Client, type Follower, type Seen, type Started } from './client.ts'

/** Of each answer; the pause before each makes a run last longer than what befalls it. */
export const tokens = 20,
  intervalMs = 60
export const modelsUrl = `scripted:?tokens=${tokens}&interval_ms=${intervalMs}`

type Kind = 'plain' | 'tools' | 'several' | 'choice' | 'quiz' | 'plan' | 'cancelled' | 'unanswered'
/** `notes`: titles of the notes that it saves; `questions`: how many it asks; `plan`: steps. */
export type Wish = {
  readonly key: string
  readonly kind: Kind
  readonly request: { readonly message: string; readonly plan?: boolean }
  readonly notes: readonly string[]
  readonly questions: number
  readonly cancelAfter?: 'token' | 'user_choice'
}

const mixture: readonly Kind[] = [
  'plain',
  'tools',
  'choice',
  'plain',
  'plan',
  'several',
  'quiz',
  'cancelled',
  'tools',
  'unanswered',
]
const noteOf = (title: string) => ['note', { title, text: `Written for ${title}.` }]
const sum = ['calculator', { expression: '6 * 7' }]
const choice = ['ask_user', { question: 'Which colour?', options: ['red', 'blue', 'green'] }]
const quiz = [
  'ask_quiz',
  {
    title: 'Two questions',
    items: [
      { question: 'One?', options: ['yes', 'no'] },
      { question: 'Two?', options: ['yes', 'no'] },
    ],
  },
]
const inTurn = (...calls: unknown[]) => `[[tools=${JSON.stringify(calls)}]]`
const planned = ['Look around', 'Tell of it']

export function wishOf(key: string, i: number): Wish {
  const kind = mixture[i % mixture.length]!
  const first = `${key}-first`
  const second = `${key}-second`
  const wish = (message: string, more: Partial<Wish> = {}): Wish => ({
    key,
    kind,
    request: { message: `${key} ${message}` },
    notes: [],
    questions: 0,
    ...more,
  })
  switch (kind) {
    case 'plain':
      return wish('')
    case 'tools':
      return wish(inTurn(sum, noteOf(first), noteOf(second)), { notes: [first, second] })
    case 'several':
      return wish(
        '[[tool_text=These are made together. ]] ' +
          `[[parallel_tools=${JSON.stringify([sum, noteOf(first), noteOf(second), sum])}]]`,
        { notes: [first, second] },
      )
    case 'choice':
      return wish(inTurn(choice, noteOf(first)), { notes: [first], questions: 1 })
    case 'quiz':
      return wish(inTurn(quiz, choice), { questions: 2 })
    case 'plan':
      return {
        ...wish(''),
        request: { plan: true, message: `${key} [[text=1. ${planned[0]}\n2. ${planned[1]}]]` },
      }
    case 'cancelled':
      return wish('[[tokens=100000]]', { cancelAfter: 'token' })
    case 'unanswered':
      return wish(inTurn(choice), { questions: 1, cancelAfter: 'user_choice' })
  }
}

const answers: Readonly<Record<string, unknown>> = { user_choice: 'b', quiz: { 1: 'a', 2: 'b' } }

/**
 * Starts the run, reads it, answers what it asks, cancels it where that is wished. `over` when all
 * that was done.
 */
export async function live(
  client: Client,
  { key, request, cancelAfter }: Wish,
): Promise<{ readonly follower: Follower; readonly over: Promise<unknown> }> {
  const acts: Promise<void>[] = []
  const started: Started = await client.start(key, request)
  let ten = 0
  const send = async (path: string, body?: object) => {
    const { status, body: { code } = {} } = await client.ask<{ code?: string }>(
      'POST',
      `/runs/${started.run_id}/${path}`,
      body,
    )
    // An answer that was given, whose answer was lost, is refused when it is given again.
    if (!(status === 409 && code === 'QUESTION_CLOSED'))
      assert.is(status, 200, `${key}: ${path} ${code}`)
  }
  const act = (path: string, body?: object) => {
    const sent = send(path, body)
    // Heard of at the end; where the test fails before that, its own failure is the one to be told.
    sent.catch(() => undefined)
    acts.push(sent)
  }
  const { follower, over } = client.follow(started, key, ({ type, data }) => {
    if (type === cancelAfter && (type !== 'token' || ++ten === 10)) act('cancel')
    else if (type in answers && cancelAfter === undefined)
      act('respond', { question_id: data['question_id'], answer: answers[type] })
  })
  return { follower, over: over.then(() => Promise.all(acts)) }
}

const sequence = (count: number) =>
  Array.from({ length: count }, (_, i) => `token${String(i).padStart(2, '0')} `).join('')
const of = (log: readonly Seen[], type: string) =>
  log.filter(one => one.type === type).map(({ data }) => data)

function checkCalls(log: readonly Seen[], { key, notes, questions }: Wish): void {
  const calls = of(log, 'tool_call')
  const results = of(log, 'tool_result')
  const idOf = (data: Seen['data']) => `${data['step']} ${data['call_id']}`
  assert.equal(results.map(idOf).sort(), calls.map(idOf).sort(), `${key}: each call has one result`)
  assert.is(new Set(calls.map(idOf)).size, calls.length, `${key}: each call was made once`)
  assert.equal(
    results.filter(({ status }) => status !== 'ok'),
    [],
    `${key}: none went wrong: ` +
      `${JSON.stringify(results.filter(({ status }) => status !== 'ok')).slice(0, 600)}`,
  )
  assert.is(calls.filter(({ name }) => name === 'note').length, notes.length, key)
  const asked = log.filter(({ type }) => type in answers)
  const answered = of(log, 'choice_answer')
  assert.is(asked.length, questions, `${key}: it asked`)
  assert.equal(
    answered.map(({ question_id: id, status, answer }) => [id, status, answer]),
    asked.map(({ type, data }) => [data['question_id'], 'answered', answers[type]]),
    `${key}: the answers arrived`,
  )
}

/**
 * A run ended as was wished, what it says is whole, and what it did to the world it did once.
 * Answers what it cost.
 */
export async function checkRun(client: Client, follower: Follower, wish: Wish): Promise<number> {
  const log = await sawItWhole(client, follower)
  const { key, kind, notes, cancelAfter } = wish
  const text = textOf(follower.frames.values())
  assert.equal(
    [log.at(-1)!.type, log.at(-1)!.data['status']],
    ['done', cancelAfter ? 'cancelled' : 'done'],
    key,
  )
  if (cancelAfter) assert.ok(sequence(100_000).startsWith(text), `${key}: ${text}`)
  else {
    assert.is(
      text,
      `${kind === 'several' ? 'These are made together. \n\n' : ''}${sequence(tokens)}`,
      key,
    )
    checkCalls(log, wish)
  }
  assert.equal(
    of(log, 'plan_step').map(({ index, status }) => [index, status]),
    kind === 'plan'
      ? planned.flatMap((_, i) => [
          [i, 'running'],
          [i, 'done'],
        ])
      : [],
    key,
  )
  const made = await client.all<{ filename: string; run_id: string }>(
    `/sessions/${follower.sessionId}/artifacts`,
  )
  assert.equal(
    made.map(({ filename, run_id: runId }) => [filename, runId]),
    notes.map(title => [`${title}.md`, follower.runId]),
    `${key}: each note once`,
  )
  return Number(of(log, 'usage')[0]!['credits'])
}
