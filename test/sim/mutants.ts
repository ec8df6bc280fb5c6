// Faults that the simulation must find: each is one change of the source, made while a sweep loads
// it, and nowhere else.
export type Mutant = {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  readonly scripts: readonly string[]
}

/** Where the text stands in a source, whatever its spaces, line ends and last commas are. */
export function placesOf(find: string, source: string): readonly RegExpExecArray[] {
  const signs = find.match(/\w+|[^\w\s]/g) ?? []
  const pattern = signs
    .map(sign => `${/[)\]}]/.test(sign) ? ',?\\s*' : ''}${sign.replace(/\W/, '\\$&')}`)
    .join('\\s*')
  return [...source.matchAll(new RegExp(pattern, 'g'))]
}
/** The source with the fault in it; undefined where its text does not stand there once. */
export function applyMutant({ find, replace }: Mutant, source: string): string | undefined {
  const [place, second] = placesOf(find, source)
  if (!place || second) return undefined
  return source.slice(0, place.index) + replace + source.slice(place.index + place[0].length)
}

const mutant = (
  name: string,
  file: string,
  find: string,
  replace: string,
  ...scripts: string[]
): Mutant => ({ name, file: `plugins/runs/${file}`, find, replace, scripts })

export const mutants: readonly Mutant[] = [
  mutant(
    'a driver does not announce itself',
    'engine/driver.ts',
    'if (!state.terminal) journal.write(leaseTaken(run.epoch, owner, died))',
    '',
    'tools',
    'plain answer',
  ),
  mutant(
    'a driver of an older epoch goes on',
    'engine/driver.ts',
    'if (state.epoch > run.epoch) return',
    '',
    'queue of two slow answers',
  ),
  mutant(
    'an append expects nothing',
    'journal/journal.ts',
    '{ expect: applied }',
    '{}',
    'plain answer',
  ),
  mutant(
    'a tool that may act once is repeated',
    'steps/tool-calls/tool-execution.ts',
    "if (effectOf(tool) !== 'once') return once(",
    'if (tool) return once(',
    'tools',
  ),
  mutant(
    'a tool acts before its intent is on disk',
    'steps/tool-calls/tool-calls.ts',
    "if (effectOf(tool) !== 'none') await calling.secure()",
    "if (effectOf(tool) !== 'none') await Promise.resolve()",
    'tools',
  ),
  mutant(
    'an answer that broke off begins again',
    'steps/model-call/resume-plan.ts',
    "return { plan: ways.find(way => !without.has(way)) ?? 'end', keep: all }",
    'return restart',
    'plain answer',
    'long answer without prefill',
  ),
  mutant(
    'what begins again is shown again',
    'steps/model-call/resume-plan.ts',
    "if (kept !== '' && begun.startsWith(kept)) return begun.slice(kept.length)",
    '',
    'an answer that is told to go on begins again',
  ),
  mutant(
    'a mark is journalled past what is held back',
    'steps/model-call/model-stream.ts',
    'teller.isBehind() ? undefined : journal.write(',
    'journal.write(',
    'resumed behind a seam',
  ),
  mutant(
    'what the provider says again is shown again',
    'steps/model-call/model-attempt.ts',
    'return createRepeat(step.text.slice(from), { fromStart: from === step.lead })',
    'return undefined',
    'resumed behind a seam',
  ),
  mutant(
    'an answer takes the run from its driver',
    'engine/lease.ts',
    '=>\n      run.owner === undefined',
    '=>\n      true || run.owner === undefined',
    'answer while a tool is at work',
  ),
  mutant(
    'an answer is kept whole in its document',
    'steps/settle.ts',
    '...(await texts.answered(run, outcome.answer)), ',
    '',
    'a long answer',
  ),
  mutant(
    'deaths in a call are not counted',
    'engine/driver.ts',
    'const died = seen.owner !== undefined && seen.owner !== owner',
    'const died = Boolean(seen) && false',
    'a tool that kills its process',
    'a model that kills its process',
  ),
  mutant(
    'readers are told that less stays than does',
    'steps/model-call/model-call.ts',
    'keep: recovery.keep, reason',
    'keep: 0, reason',
    'plain answer',
  ),
  mutant(
    'a continuation repeats the last words',
    'steps/model-call/resume-plan.ts',
    'if (kept.endsWith(begun.slice(0, size))) return begun.slice(size)',
    '',
    'long answer without prefill',
  ),
  mutant(
    'the end is charged before it is decided',
    'steps/settle.ts',
    'journal.write(ending(decided), event(',
    'journal.write(event(',
    'plain answer',
    'cancel in mid-stream',
  ),
  mutant(
    'a run is closed before its terminal event',
    'steps/settle.ts',
    'const first = await charge(billing, run, credits)',
    'const first = await charge(billing, run, credits); await own.update(Runs, run.id, { ' +
      "set: { phase: 'closed', status: 'done' } })",
    'plain answer',
  ),
  mutant(
    'the next in the queue is handed the session without being remembered',
    'sessions/session-queue.ts',
    "{ set: { due: 0 }, inc: { wakes: 1 } }, { if: { phase: 'placed' } }",
    "{ set: {} }, { if: { phase: 'placed' } }",
    'queue of three in one session',
    'queue paused by a failure',
  ),
  mutant(
    'a run joins a queue that has changed',
    'sessions/enqueue.ts',
    'rev: session.rev, deleting',
    'deleting',
    'queue of three in one session',
    'queue paused by a failure',
  ),
  mutant(
    'a run waits for an answer that has come',
    'engine/driver.ts',
    'replies: answered, cancelAsked',
    'cancelAsked',
    'question to the user',
  ),
  mutant(
    'a question takes two answers',
    'engine/replies.ts',
    'replies: run.replies, cancelAsked',
    'cancelAsked',
    'question to the user',
  ),
  mutant(
    'a cancelled run goes to sleep',
    'engine/driver.ts',
    ', cancelAsked: { exists: false } } as const',
    ' } as const',
    'cancel of a waiting run',
  ),
  mutant(
    'a run is answered without the one before it',
    'prompt/conversation.ts',
    "status: { in: ['done', 'running'] }",
    "status: 'done'",
    'queue of three in one session',
  ),
  mutant(
    'credits that were set aside beyond the first hold stay there',
    'journal/hold.ts',
    'if (!isHeld) await billing.hold(run.orgId, { of, amount: 0 })',
    'if (!isHeld) continue; await billing.hold(run.orgId, { of, amount: 0 })',
    'cancel of a run that outgrew its hold',
  ),
]
