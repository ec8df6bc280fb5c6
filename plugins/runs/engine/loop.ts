// Carries one run on, step by step, from where its journal stands. It stops at the run's end, or at
// a question that only its user can answer.
import { fault, hasCode, isFault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { nextAction, type Action } from './next-action.ts'
import type { AuditLog } from '../tools/audit-log.ts'
import { Runs, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { contextOf } from '../prompt/context.ts'
import type { Conversation, ReadConversation } from '../prompt/conversation.ts'
import type { KeepText } from '../prompt/files.ts'
import type { Journal } from '../journal/journal.ts'
import { reportFailure } from '../prompt/planning.ts'
import { createToolCount, estimateTokens, tokensOf } from '../price.ts'
import { repliesOf } from './replies.ts'
import { event, type Ending, type Terminal } from '../journal/records.ts'
import { callsUnderWay, currentStep, modelCallIn, usageOf, type Asked } from '../journal/state.ts'
import type { Texts } from '../journal/texts.ts'
import { callTools } from '../steps/tool-calls/tool-calls.ts'
import { reserve } from '../journal/hold.ts'
import { callModel } from '../steps/model-call/model-call.ts'
import type { Cancellation } from '../steps/cancellation.ts'
import { allowedFor, type ToolRegistry } from '../tools/tool-registry.ts'
import type { RunSpans } from '../telemetry/spans.ts'

export type LoopDeps = {
  readonly store: ScopedStorage
  readonly eventlog: ScopedEventlog
  readonly billing: Ledger
  readonly models: ModelProvider
  readonly clock: Clock
  readonly log: Log
  readonly config: RunsConfig
  readonly toolRegistry: ToolRegistry
  readonly audit: AuditLog
  readonly readConversation: ReadConversation
  readonly texts: Texts
  /** Keeps a long text of the run as an artifact. */
  readonly keepText: KeepText
  /** Everything applied so far, on storage and event log, is on disk. */
  readonly durable: () => Promise<void>
}
/**
 * How a driver leaves a run: ended, or waiting for its user. Undefined: the driver must stop and
 * writes nothing more.
 */
export type Left = { readonly ending: Ending } | { readonly waits: readonly Asked[] } | undefined

export function createLoop({
  store,
  eventlog,
  billing,
  models,
  clock,
  log,
  config,
  toolRegistry,
  audit,
  readConversation,
  keepText,
  texts,
  durable,
}: LoopDeps) {
  const bounds = {
    stepsMax: config.steps_max,
    roundsMax: config.rounds_max,
    planStepsMax: config.plan_steps_max,
    replansMax: config.replans_max,
  }

  /** The usage so far, accepted or not. A run that ends early is charged for it. */
  const usedBy = (journal: Journal): Ending['usage'] => {
    const step = currentStep(journal.state)
    const sum = usageOf(journal.state)
    if (!step || step.accepted) return sum
    const called = step.calls.reduce(
      (chars, { call }) => chars + JSON.stringify(call.arguments).length,
      0,
    )
    return {
      inputTokens: sum.inputTokens + (step.asked ?? 0),
      outputTokens:
        sum.outputTokens + tokensOf(step.text.length - step.lead + step.deliberated + called),
    }
  }
  const tokensOfTools = createToolCount()
  /** Names the call in which drivers died too often. */
  const fatalIn = ({ state }: Journal): string | undefined => {
    const calls = callsUnderWay(state).filter(({ deaths }) => deaths >= config.deaths_max)
    if (calls.length > 0)
      return calls.map(({ call }) => `the tool call ${call.name} (${call.id})`).join(', ')
    const step = modelCallIn(state)
    return step !== undefined &&
      state.deaths.step === step &&
      state.deaths.times >= config.deaths_max
      ? `model call ${step + 1}`
      : undefined
  }

  const thinkNext = async (
    run: Run,
    journal: Journal,
    cancellation: Cancellation,
    spans: RunSpans,
    conversation: Conversation,
    { step, purpose, tools, before }: Extract<Action, { do: 'think' }>,
  ): Promise<void> => {
    if (before.length > 0) journal.write(...before)
    const { terms } = run
    const { messages, attachments, cut } = contextOf(run, conversation, journal.state, {
      purpose,
      planStepsMax: config.plan_steps_max,
    })
    if (cut && journal.state.cut !== JSON.stringify(cut)) journal.write(event('context_cut', cut))
    await reserve(billing, run, journal, step, estimateTokens(messages, attachments))
    const specs = tools && terms.supports.tools ? toolRegistry.specs(allowedFor(run)) : []
    const offered = purpose === 'work' && terms.supports.tools ? [...specs, reportFailure] : specs
    const request = {
      model: run.model,
      messages,
      reasoning: run.request.reasoning,
      ...(attachments.length > 0 ? { attachments } : {}),
      ...(offered.length > 0 ? { tools: offered } : {}),
    }
    cancellation.touch()
    try {
      await callModel(
        journal,
        {
          models,
          clock,
          log: (level, name, fields) =>
            log(level, name, { ...fields, run: run.id, organisation: run.orgId }),
          spans,
          request,
          toolTokens: offered.length > 0 ? tokensOfTools(offered) : 0,
          cancellation,
          triesMax: config.tries_max,
          bounds: { bytesMax: config.arguments_bytes_max, depthMax: config.arguments_depth_max },
          textBytesMax: config.step_bytes_max,
          terms: {
            supports: terms.supports,
            onInterrupt: terms.onInterrupt,
            isValid: toolRegistry.isValid(allowedFor(run)),
          },
        },
        step,
      )
    } finally {
      cancellation.pause()
    }
  }
  const written = (journal: Journal) => async (): Promise<void> => {
    await journal.settled()
    await durable()
  }
  const secure =
    (run: Run, journal: Journal, cancellation: Cancellation) => async (): Promise<void> => {
      await written(journal)()
      if ((await store.tenant(run).get(Runs, run.id))?.epoch === run.epoch) return
      cancellation.stop('lost')
      throw cancellation.stopped()
    }
  /** Takes the user's answers over from the run's document into the journal. */
  const hearReplies = (journal: Journal, run: Run): void => {
    for (const { number, status, answer } of repliesOf(run)) {
      const open = currentStep(journal.state)?.calls.find(
        ({ asked, answered }) => asked?.number === number && !answered,
      )
      if (open?.asked)
        journal.write(
          event('choice_answer', {
            question_id: open.asked.id,
            step: journal.state.steps.length - 1,
            call_id: open.call.id,
            status,
            answer,
          }),
        )
    }
  }

  const goOn = async (
    run: Run,
    journal: Journal,
    cancellation: Cancellation,
    spans: RunSpans,
  ): Promise<Terminal | { readonly waits: readonly Asked[] }> => {
    const { state } = journal
    let conversation: Conversation | undefined
    hearReplies(journal, run)
    for (;;) {
      if (run.cancelAsked) cancellation.stop('cancelled')
      if (cancellation.stopped() !== undefined) throw cancellation.stopped()
      if (state.takes > config.takes_max) throw fault('RUN_STUCK', { takes: state.takes })
      const fatal = fatalIn(journal)
      if (fatal !== undefined) throw fault('CALL_FATAL', { call: fatal, times: config.deaths_max })
      const action = nextAction(state, run.request, bounds)
      switch (action.do) {
        case 'note':
          journal.write(...action.records)
          break
        case 'think':
          conversation ??= await readConversation(await texts.whole(run))
          await thinkNext(run, journal, cancellation, spans, conversation, action)
          break
        case 'call': {
          const waits = await callTools(journal, action.step, {
            run,
            toolRegistry,
            allowed: allowedFor(run),
            clock,
            log,
            cancellation,
            spans,
            audit,
            questionMs: config.question_ms,
            questionBytesMax: config.arguments_bytes_max,
            resultCharsMax: config.result_chars_max,
            resultBytesMax: eventlog.limits.appendBytesMax / 2,
            secure: secure(run, journal, cancellation),
            written: written(journal),
            keep: (key, name, content) => keepText(run, key, name, content),
          })
          if (waits.length > 0) return { waits }
          break
        }
        case 'end':
          return action.terminal
      }
    }
  }

  /** The ending that an error leads to. Undefined: this driver writes nothing more. */
  const endingAfter = (
    error: unknown,
    run: Run,
    journal: Journal,
    cancellation: Cancellation,
  ): Ending | undefined => {
    if (journal.failure() || hasCode(error, 'STREAM_MOVED')) return undefined
    const stopped = cancellation.stopped()
    const usage = usedBy(journal)
    if (stopped !== undefined)
      return stopped === 'cancelled'
        ? { terminal: { type: 'done', status: 'cancelled' }, usage, charged: true }
        : undefined
    // A storage failure does not end the run: another driver continues it when the storage is back.
    if (isFault(error) && ['STORAGE_FULL', 'UNAVAILABLE', 'STOPPING'].includes(error.code))
      return undefined
    if (hasCode(error, 'INSUFFICIENT_CREDITS'))
      return {
        terminal: {
          type: 'error',
          code: 'CREDITS_EXHAUSTED',
          detail: fault('CREDITS_EXHAUSTED', error.values).message,
        },
        usage: usageOf(journal.state),
        charged: true,
      }
    if (!isFault(error)) log('error', 'run.failed', { run: run.id, organisation: run.orgId, error })
    const { code, message } = isFault(error) ? error : fault('INTERNAL')
    return { terminal: { type: 'error', code, detail: message }, usage, charged: false }
  }

  return async function loop(
    run: Run,
    journal: Journal,
    cancellation: Cancellation,
    spans: RunSpans,
  ): Promise<Left> {
    if (journal.state.ending) return { ending: journal.state.ending }
    try {
      const end = await goOn(run, journal, cancellation, spans)
      if ('waits' in end) return end
      return { ending: { terminal: end, usage: usageOf(journal.state), charged: true } }
    } catch (error) {
      await journal.settled().catch(() => undefined)
      const ending = endingAfter(error, run, journal, cancellation)
      return ending && { ending }
    }
  }
}
export type Loop = ReturnType<typeof createLoop>
