import { events } from '#contracts/events.ts'
import { runViews } from '#contracts/run-views.ts'
import { runs as runRows } from '#contracts/runs.ts'
import { sessions as sessionRows } from '#contracts/sessions.ts'
import { Type as t } from 'typebox'
import { command, definePlugin, Host, into, Broadcast, type KernelInfo, type Json } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import { Billing } from '#ports/billing.ts'
import { SystemClock, type Clock } from '#ports/clock.ts'
import { EventLog, type ScopedEventlog } from '#ports/eventlog.ts'
import { Models } from '#ports/models.ts'
import { JobQueue, type Queue } from '#ports/queue.ts'
import { Search } from '#ports/search.ts'
import { Storage, type ScopedStorage } from '#ports/storage.ts'
import { Traces } from '#ports/traces.ts'
import { builtIn } from './agents.ts'
import { Artifacts, SessionOwners, Uploads } from '../files/api.ts'
import { Agents, Tools } from './api.ts'
import { createAuditLog, ToolInvocations } from './tools/audit-log.ts'
import { createBacklog } from './admission/backlog.ts'
import { verifyInstallation, verifyReason } from './verify/verify-command.ts'
import {
  EventBytes,
  Runs,
  SearchProgresses,
  SearchRemovals,
  Sessions,
  sweepReason,
} from './collections.ts'
import { RunsConfig } from './config.ts'
import { createEventQuota, crowdingReason } from './retention/event-quota.ts'
import { createDriver, type Driver, type DriverDeps } from './engine/driver.ts'
import { createRunMetrics } from './telemetry/metrics.ts'
import { createKeepText, createReadUploads, sessionOwner } from './prompt/files.ts'
import { createRunList } from './views/run-list.ts'
import { createRunView } from './views/run-view.ts'
import { createStandings } from './views/standing.ts'
import { createHistory } from './sessions/history.ts'
import { createConversation } from './prompt/conversation.ts'
import { createEnded } from './journal/outcome.ts'
import { createLease } from './engine/lease.ts'
import { createLoop } from './engine/loop.ts'
import { createSlots } from './admission/slots.ts'
import { createQuota } from './retention/run-quota.ts'
import { recordsFormat } from './journal/records.ts'
import { createRemoteDriver, driveJob } from './engine/remote-driver.ts'
import { createReplies } from './engine/replies.ts'
import { createRetention, retentionReason } from './retention/retention.ts'
import { createRuns } from './runs.ts'
import { createSessions } from './sessions/sessions.ts'
import { createAdmit } from './admission/admit.ts'
import { createSearch } from './sessions/text-search.ts'
import { createSweep } from './engine/sweep.ts'
import { createReadTexts } from './sessions/copies.ts'
import { createTexts } from './journal/texts.ts'
import { startTimers } from './engine/timers.ts'
import { createToolRegistry } from './tools/tool-registry.ts'
import { createRunSpans } from './telemetry/spans.ts'
import { createTranscripts, transcriptsReason, type Transcripts } from './sessions/transcripts.ts'

export default definePlugin({
  name: 'runs',
  version: '1.0.0',
  kernel: '^1.0.0',
  mount: 'v1',
  contract: { ...runRows, ...runViews, ...sessionRows },
  uses: {
    store: Storage,
    eventlog: EventLog,
    billing: Billing,
    models: Models,
    traces: Traces,
    clock: SystemClock,
    queue: JobQueue,
    search: Search,
    host: Host,
    peers: Broadcast,
    agents: Agents,
    tools: Tools,
    uploads: Uploads,
    artifacts: Artifacts,
  },
  config: RunsConfig,
  may: { charge: 'what a run costs', models: 'the steps of a run' },
  names: 'unprefixed',
  limits: { runs: { about: 'Runs that one user starts', perSecond: 20, burst: 40 } },
  collections: [Runs, Sessions, EventBytes, ToolInvocations, SearchRemovals, SearchProgresses],
  system: [sweepReason, retentionReason, crowdingReason, verifyReason, transcriptsReason],
  emits: events,
  records: {
    reads: [recordsFormat],
    of: 'runs',
    live: async ({ store }) => ({
      [recordsFormat]: await store
        .system(sweepReason)
        .count(Runs, { phase: { in: ['admitting', 'placed'] } }),
    }),
  },
  services: {
    owner: ({ host, clock }: { host: KernelInfo; clock: Clock }) =>
      `${host.processId}/${clock.id()}`,
    slots: (deps: {
      config: RunsConfig
      store: ScopedStorage
      clock: Clock
      log: Log
      host: KernelInfo
    }) => (deps.host.role === 'api' ? createBacklog(deps) : createSlots(deps.config)),
    durable:
      ({ store, eventlog }: { store: ScopedStorage; eventlog: ScopedEventlog }) =>
      () =>
        Promise.all([store.durable(), eventlog.durable()]).then(() => undefined),
    texts: createTexts,
    ended: createEnded,
    readUploads: createReadUploads,
    readConversation: createConversation,
    keepText: createKeepText,
    toolRegistry: createToolRegistry,
    traced: createRunSpans,
    audit: createAuditLog,
    lease: createLease,
    metrics: createRunMetrics,
    replies: createReplies,
    admission: createAdmit,
    loop: createLoop,
    driver: (deps: DriverDeps & { queue: Queue; host: KernelInfo }): Driver =>
      deps.host.role === 'api' ? createRemoteDriver(deps) : createDriver(deps),
    sweep: createSweep,
    eventQuota: createEventQuota,
    retain: createRetention,
    standings: createStandings,
    runs: createRuns,
    readRun: createRunView,
    listRuns: createRunList,
    sessions: createSessions,
    history: createHistory,
    readTexts: createReadTexts,
    quota: createQuota,
    transcripts: createTranscripts,
    find: createSearch,
  },
  routes: {
    'POST /chat': ({ runs, caller, body, headers }) =>
      runs.start(caller, body, headers['idempotency-key'], headers['traceparent']),
    'POST /tasks': ({ runs, caller, body, headers }) =>
      runs.start(caller, body, headers['idempotency-key'], headers['traceparent']),
    'GET /runs': ({ listRuns, caller, query }) => listRuns(caller, query),
    'GET /runs/{run_id}': ({ readRun, caller, params }) => readRun(caller, params.run_id),
    'GET /runs/{run_id}/events': ({ runs, caller, params, after, signal }) =>
      runs.follow(caller, params.run_id, after, signal),
    'POST /runs/{run_id}/respond': ({ runs, caller, params, body }) =>
      runs.respond(caller, params.run_id, body),
    'POST /runs/{run_id}/cancel': ({ runs, caller, params }) => runs.cancel(caller, params.run_id),
    'GET /sessions': ({ sessions, caller, query }) => sessions.list(caller, query),
    'GET /sessions/{id}': ({ sessions, caller, params }) => sessions.read(caller, params.id),
    'GET /sessions/search': ({ find, caller, query }) => find(caller, query),
    'POST /sessions/{id}/branch': ({ history, caller, params, body }) =>
      history.branch(caller, params.id, body ?? {}),
    'POST /sessions/{id}/truncate': ({ history, caller, params, body }) =>
      history.truncate(caller, params.id, body.message_id),
    'PATCH /sessions/{id}': ({ sessions, caller, params, body }) =>
      sessions.rename(caller, params.id, body.title),
    'DELETE /sessions/{id}': ({ sessions, caller, params }) => sessions.remove(caller, params.id),
    'GET /sessions/{id}/messages': ({ sessions, caller, params, query }) =>
      sessions.messages(caller, params.id, query),
    'GET /sessions/{id}/artifacts': ({ sessions, caller, params, query }) =>
      sessions.artifacts(caller, params.id, query),
    'GET /sessions/{id}/queue': ({ sessions, caller, params }) => sessions.queue(caller, params.id),
    'POST /sessions/{id}/queue/resume': ({ sessions, caller, params }) =>
      sessions.resumeQueue(caller, params.id),
  },
  // The run's own lease decides who drives it.
  jobs: {
    [driveJob]: {
      run: ({ driver, data }: { driver: Driver; data: Json }) =>
        driver.startNext(data as { orgId: string }, (data as { id: string }).id),
      options: { concurrency: 16, attemptsMax: 2 },
    },
  },
  commands: {
    verify: command({
      summary:
        'Checks every run and every ledger: one end each, one charge, no gap. Exit code 1 ' +
        'when anything does not hold.',
      options: t.Object({}, { additionalProperties: false }),
      run: verifyInstallation,
    }),
    reindex: command({
      summary:
        'Writes every conversation into the search index anew, in the background; for an ' +
        'index that was lost, or is another one now.',
      options: t.Object({}, { additionalProperties: false }),
      needsServer: true,
      run: async ({ transcripts }: { transcripts: Transcripts }) => {
        await transcripts.again()
        return { ok: true }
      },
    }),
  },
  contributes: [
    ...builtIn.map(agent => into(Agents, () => agent)),
    into(SessionOwners, sessionOwner),
  ],
  start: startTimers,
})
