// Admits a run, in an order in which each crash point is safe: insert the run, hold the credits,
// take the place in the session.
import { createHash } from 'node:crypto'
import type { RunStart } from '#contracts/runs.ts'
import { fault, hasCode, isFault, type Caller, type KernelInfo } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import type { Agent } from '../api.ts'
import { Runs, Sessions, type Run, type Terms } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { contextOf } from '../prompt/context.ts'
import type { ReadConversation } from '../prompt/conversation.ts'
import type { Slots } from './slots.ts'
import { estimateTokens, holdFor } from '../price.ts'
import type { Quota } from '../retention/run-quota.ts'
import { emptyState } from '../journal/state.ts'
import type { Texts } from '../journal/texts.ts'
import { enqueue, type Placed } from '../sessions/enqueue.ts'
import { unstick, withdraw } from '../sessions/session-queue.ts'

/** `mine`: this call made the placement, so it begins the run. */
export type Admission = {
  readonly run: Run
  readonly placed: Placed
  readonly resumed: boolean
  readonly mine: boolean
}
type Deps = {
  store: ScopedStorage
  billing: Ledger
  clock: Clock
  owner: string
  host: KernelInfo
  config: RunsConfig
  models: ModelProvider
  agents: (scope: { readonly orgId: string }) => readonly Agent[]
  readConversation: ReadConversation
  slots: Slots
  quota: Quota
  texts: Texts
}

const fingerprintOf = (request: RunStart) =>
  createHash('sha256')
    .update(JSON.stringify(request, Object.keys(request).sort()))
    .digest('base64url')

/**
 * Whether this is the request that the run began with. A repeated request may also name the session
 * that this run opened.
 */
function isSame({ fingerprint, opensSession, sessionId }: Run, request: RunStart): boolean {
  if (fingerprintOf(request) === fingerprint) return true
  const { session_id: named, ...rest } = request
  return opensSession && named?.toLowerCase() === sessionId && fingerprintOf(rest) === fingerprint
}

/** Refuses ids of things that are not there. */
function requireKnown(request: RunStart): void {
  if (request.kb_ids?.length) throw fault('NOT_FOUND', { what: 'knowledge base (kb_ids.0)' })
  if (request.data_workspace_id)
    throw fault('NOT_FOUND', { what: 'data workspace (data_workspace_id)' })
  if (!isTimeZone(request.client_tz))
    throw fault('INVALID_FIELD', { field: 'client_tz', why: 'is not an IANA time zone' })
}
const isTimeZone = (name: string) => {
  if (name === 'UTC') return true
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

export function createAdmit({
  store,
  billing,
  clock,
  owner,
  host,
  config,
  models,
  agents,
  readConversation,
  slots,
  quota,
  texts,
}: Deps) {
  /** Makes every check that needs no write, and returns the new run. */
  const prepare = async (
    caller: Caller,
    request: RunStart,
    own: Store,
    trace: string | undefined,
  ): Promise<Run> => {
    requireKnown(request)
    const bytesMax = config.message_bytes_max
    if (Buffer.byteLength(request.message) > bytesMax)
      throw fault('INVALID_FIELD', { field: 'message', why: `is longer than ${bytesMax} bytes` })
    const model = (await models.catalogue()).find(({ key, isDefault }) =>
      request.model === undefined ? isDefault : key === request.model,
    )
    if (!model)
      throw fault('INVALID_FIELD', { field: 'model', why: 'is not in the catalogue (GET /models)' })
    const agent = agents(caller).find(({ key }) => key === request.app_name)
    if (!agent) throw fault('NOT_FOUND', { what: 'agent (app_name)' })
    let latest: string | undefined
    if (request.session_id) {
      const session = await own.get(Sessions, request.session_id)
      if (!session || session.userId !== caller.userId || session.deleting)
        throw fault('NOT_FOUND', { what: 'session' })
      latest = session.latest
    } else await quota.requireRoom(caller)
    // Ids order a conversation, so the new id must be greater than the latest.
    const id = clock.id(latest)
    const createdAt = clock.now()
    const { supports, contextTokens, outputTokensMax } = model
    const { instruction, tools, onInterrupt = 'continue' } = agent
    const terms: Terms = {
      provider: model.provider,
      supports,
      contextTokens,
      outputTokensMax,
      instruction,
      onInterrupt,
      ...(tools ? { tools } : {}),
    }
    const draft = {
      id,
      orgId: caller.orgId,
      userId: caller.userId,
      sessionId: request.session_id ?? clock.id(),
      opensSession: !request.session_id,
      request,
      createdAt,
      terms,
      ...(trace === undefined ? {} : { trace }),
    }
    const { messages, attachments } = contextOf(
      draft,
      await readConversation(draft),
      emptyState(),
      { purpose: request.plan ? 'plan' : 'answer', planStepsMax: config.plan_steps_max },
    )
    if (estimateTokens(messages) > contextTokens)
      throw fault('INVALID_FIELD', {
        field: 'message',
        why: `is longer than the model reads (about ${contextTokens} tokens)`,
      })
    return {
      ...draft,
      phase: 'admitting',
      status: 'running',
      due: 0,
      epoch: 0,
      beat: 0,
      replies: 0,
      wakes: 0,
      ...(request.idempotency_key === undefined
        ? {}
        : { idempotencyKey: request.idempotency_key, fingerprint: fingerprintOf(request) }),
      messageId: clock.id(),
      answerId: clock.id(),
      model: model.key,
      price: model.price,
      hold: holdFor(model, messages, attachments),
    }
  }

  /** The earlier run under this key. Throws IDEMPOTENCY_MISMATCH if its request was another. */
  const earlier = async (
    caller: Caller,
    request: RunStart,
    own: Store,
  ): Promise<Run | undefined> => {
    const {
      items: [found],
    } = await own.find(Runs, {
      where: { userId: caller.userId, idempotencyKey: request.idempotency_key! },
      limit: 1,
    })
    if (found && !isSame(found, request)) throw fault('IDEMPOTENCY_MISMATCH')
    return found
  }

  /** Removes a run that never started. */
  const drop = async (run: Run, own: Store): Promise<void> => {
    if (await own.remove(Runs, run.id, { if: { phase: 'admitting' } })) await texts.remove(run)
  }

  /** Continues an admission from wherever it stands; every step may be repeated. */
  const proceed = async (
    run: Run,
    own: Store,
    resumed: boolean,
    fresh: boolean,
    epoch = store.epoch(),
  ): Promise<Admission> => {
    // A full disk may lose the insert or a later write. No further write may follow then.
    const stand = () => {
      if (store.epoch() !== epoch) throw fault('STORAGE_FULL')
    }

    if (run.phase !== 'admitting')
      return {
        run,
        resumed,
        mine: false,
        placed: { status: run.placedAs ?? 'running', queueSeq: run.queueSeq ?? 0 },
      }
    // The hold has ended: a crash interrupted a refusal. The refusal is completed, not undone.
    if (!fresh && (await billing.entry(run.orgId, `end:${run.id}`))) {
      await drop(run, own)
      throw fault('CONFLICT', { why: 'this request was refused; send it again' })
    }
    try {
      stand()
      await billing.hold(run.orgId, { of: run.id, amount: run.hold })
    } catch (error) {
      // Nothing started, so the key is freed. The same request may come again when there are
      // credits.
      if (hasCode(error, 'INSUFFICIENT_CREDITS')) await drop(run, own)
      throw error
    }
    let placed: Placed
    try {
      stand()
      placed = await enqueue(own, run, { queueMax: config.queue_max, now: clock.now() })
    } catch (error) {
      // A storage failure refuses nothing: the sweep, or the same request, continues from here.
      if (isFault(error) && error.status < 500) {
        await billing.release(run.orgId, { of: run.id, reason: 'not placed' })
        await drop(run, own)
      }
      throw error
    }
    // A process that drives runs takes the lease in the same write.
    const starts = placed.status === 'running' && host.role !== 'api'
    const updated = await own.update(
      Runs,
      run.id,
      {
        set: {
          phase: 'placed',
          status: placed.status,
          placedAs: placed.status,
          queueSeq: placed.queueSeq,
          ...(starts ? { owner, epoch: 1, beat: 1 } : {}),
        },
      },
      { if: { phase: 'admitting' } },
    )
    if (updated) return { run: updated, placed, resumed, mine: true }
    // Another process finished this admission, and perhaps the run. The place that was just taken
    // must not outlive the run.
    const other = await own.get(Runs, run.id)
    if (other?.phase !== 'placed') await withdraw(own, run)
    await unstick(own, run.sessionId, clock.now())
    if (!other) throw fault('CONFLICT', { why: 'the run was refused while it was being admitted' })
    return proceed(other, own, resumed, false)
  }

  return {
    /** Throws INSUFFICIENT_CREDITS, NOT_FOUND, INVALID_FIELD, IDEMPOTENCY_MISMATCH, QUEUE_FULL. */
    async admit(caller: Caller, request: RunStart, trace?: string): Promise<Admission> {
      const own = store.tenant(caller)
      if (request.idempotency_key !== undefined) {
        const known = await earlier(caller, request, own)
        if (known) return proceed(known, own, true, false)
      }
      const arrive = slots.admit(caller.orgId)
      try {
        const asked = await prepare(caller, request, own, trace)
        const epoch = store.epoch()
        const run = await texts.stored(asked)
        try {
          await own.insert(Runs, run)
        } catch (error) {
          // Texts are removed only where the run was surely not stored. Any other failure may have
          // stored it all the same.
          if (hasCode(error, 'DUPLICATE')) await texts.remove(run)
          const known =
            hasCode(error, 'DUPLICATE') && run.idempotencyKey !== undefined
              ? await earlier(caller, request, own)
              : undefined
          if (known) return await proceed(known, own, true, false)
          throw error
        }
        return await proceed(run, own, false, true, epoch)
      } finally {
        arrive()
      }
    },
    /** Lets the sweep continue an admission that a crash interrupted. */
    resume: (run: Run) => proceed(run, store.tenant(run), true, false),
  }
}
export type Admit = ReturnType<typeof createAdmit>
