// Makes a new run of a request, with every check that needs no write.
import type { RunStart } from '#contracts/runs.ts'
import { fault, type Caller } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelProvider } from '#ports/models.ts'
import type { Store } from '#ports/storage.ts'
import type { Agent } from '../api.ts'
import { Sessions, type Run, type Terms } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { emptyState } from '../journal/state.ts'
import { estimateTokens, holdFor } from '../price.ts'
import { contextOf } from '../prompt/context.ts'
import type { ReadConversation } from '../prompt/conversation.ts'
import type { Quota } from '../retention/run-quota.ts'
import { fingerprintOf } from './idempotency.ts'

export type PrepareDeps = {
  clock: Clock
  config: RunsConfig
  models: ModelProvider
  agents: (scope: { readonly orgId: string }) => readonly Agent[]
  readConversation: ReadConversation
  quota: Quota
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

const termsOf = (model: Model, agent: Agent): Terms => {
  const { provider, supports, contextTokens, outputTokensMax } = model
  const { instruction, tools, onInterrupt = 'continue' } = agent
  return {
    provider,
    supports,
    contextTokens,
    outputTokensMax,
    instruction,
    onInterrupt,
    ...(tools ? { tools } : {}),
  }
}

export function createPrepare({
  clock,
  config,
  models,
  agents,
  readConversation,
  quota,
}: PrepareDeps) {
  const requireShort = ({ message }: RunStart): void => {
    const bytesMax = config.message_bytes_max
    if (Buffer.byteLength(message) > bytesMax)
      throw fault('INVALID_FIELD', { field: 'message', why: `is longer than ${bytesMax} bytes` })
  }
  const modelFor = async (request: RunStart): Promise<Model> => {
    const model = (await models.catalogue()).find(({ key, isDefault }) =>
      request.model === undefined ? isDefault : key === request.model,
    )
    if (!model)
      throw fault('INVALID_FIELD', { field: 'model', why: 'is not in the catalogue (GET /models)' })
    return model
  }
  const agentFor = (caller: Caller, request: RunStart): Agent => {
    const agent = agents(caller).find(({ key }) => key === request.app_name)
    if (!agent) throw fault('NOT_FOUND', { what: 'agent (app_name)' })
    return agent
  }
  /** The newest run of the session. Undefined where the run opens one, and there is room for it. */
  const latestOf = async (
    caller: Caller,
    request: RunStart,
    own: Store,
  ): Promise<string | undefined> => {
    if (!request.session_id) {
      await quota.requireRoom(caller)
      return undefined
    }
    const session = await own.get(Sessions, request.session_id)
    if (!session || session.userId !== caller.userId || session.deleting)
      throw fault('NOT_FOUND', { what: 'session' })
    return session.latest
  }
  /** What the model reads first. Throws INVALID_FIELD if the message alone is beyond its window. */
  const firstContext = async (draft: Parameters<ReadConversation>[0] & Pick<Run, 'createdAt'>) => {
    const { request, terms } = draft
    const context = contextOf(draft, await readConversation(draft), emptyState(), {
      purpose: request.plan ? 'plan' : 'answer',
      planStepsMax: config.plan_steps_max,
    })
    if (estimateTokens(context.messages) > terms.contextTokens)
      throw fault('INVALID_FIELD', {
        field: 'message',
        why: `is longer than the model reads (about ${terms.contextTokens} tokens)`,
      })
    return context
  }

  return async (
    caller: Caller,
    request: RunStart,
    own: Store,
    trace: string | undefined,
  ): Promise<Run> => {
    requireKnown(request)
    requireShort(request)
    const model = await modelFor(request)
    const agent = agentFor(caller, request)
    // Ids order a conversation, so the new id must be greater than the latest.
    const id = clock.id(await latestOf(caller, request, own))
    const createdAt = clock.now()
    const draft = {
      id,
      orgId: caller.orgId,
      userId: caller.userId,
      sessionId: request.session_id ?? clock.id(),
      opensSession: !request.session_id,
      request,
      createdAt,
      terms: termsOf(model, agent),
      ...(trace === undefined ? {} : { trace }),
    }
    const { messages, attachments } = await firstContext(draft)
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
}
