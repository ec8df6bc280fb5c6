// The server that is soaked: its settings, and what it holds.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcesses, freePort, signUp, startProcess } from '../../support/process.ts'
import { attach, byLabel, readMetrics } from '../probe.ts'
import { residentMiB } from '../servers.ts'
import { MiB, type Rest } from '../verdict.ts'
import { busy, idle, intervalMs, minutes, tokens } from './soak-options.ts'

export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

const credits = 100_000_000
/**
 * Pauses between the collections after a load: the engine and its allocator give memory back when
 * they have been idle for a while.
 */
const restMs = [5000, 15_000, 1000]

export async function startSoakServer() {
  const home = mkdtempSync(join(tmpdir(), 'agent-platform-soak-'))
  const metricsPort = await freePort()
  const debugPort = await freePort()
  const places = String(busy + idle + 1000)
  const env = {
    DATA_DIR: home,
    METRICS_PORT: String(metricsPort),
    MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=${intervalMs}&reasoning=1`,
    NODE_OPTIONS: `--inspect-port=127.0.0.1:${debugPort}`,
    // One user and one address have them all.
    HTTP_STREAMS_MAX: places,
    HTTP_STREAMS_PER_USER_MAX: places,
    HTTP_STREAMS_PER_ADDRESS_MAX: places,
    LIMITS_RUNS_PER_SECOND: '1000000',
    LIMITS_RUNS_BURST: '1000000',
    LIMITS_TOKEN_PER_MINUTE: '1000',
    RUNS_ACTIVE_MAX: places,
    RUNS_ACTIVE_PER_ORG_MAX: places,
    RUNS_WAITING_MAX: places,
    RUNS_WAITING_PER_ORG_MAX: places,
    // So that logs are made small while others are written, as on a server that is up for longer.
    RUNS_COMPACT_AFTER_MS: String(Math.round(Math.min(60_000, minutes * 10_000))),
    RUNS_RETENTION_MS: '5000',
  }
  const server = await startProcess(env)
  const probe = await attach(server, debugPort)
  // The debugger's port is the server's alone.
  const { token, apiKey } = await signUp(server.base, { ...env, NODE_OPTIONS: '' }, credits)
  const fresh = async () =>
    (
      (await (
        await fetch(`${server.base}/auth/token`, {
          method: 'POST',
          headers: { 'x-api-key': apiKey, connection: 'close' },
        })
      ).json()) as { access_token: string }
    ).access_token
  const balance = async () =>
    (await (
      await fetch(`${server.base}/balance`, {
        headers: { authorization: `Bearer ${await fresh()}`, connection: 'close' },
      })
    ).json()) as { balance: number; held: number }
  const figure = async (name: string) => (await readMetrics(metricsPort)).get(name) ?? NaN
  const rss = () => residentMiB([server.child.pid!]) * MiB

  /** Once nothing is under way any more: connections close a moment after their streams. */
  async function atRest(runs: number): Promise<Rest> {
    for (let tries = 0, before = -1; tries < 100; tries++, await pause(500)) {
      const seen = await readMetrics(metricsPort)
      const now = seen.get('nodejs_active_handles_total')!
      if (
        seen.get('http_open_streams') === 0 &&
        seen.get('runs_active{state="active"}') === 0 &&
        now === before
      )
        break
      before = now
    }
    // What was needed at the peak goes back to the system by and by; and the last reading's
    // connection goes, too.
    for (const ms of restMs) {
      await probe.heap()
      await pause(ms)
    }
    const heap = await probe.heap()
    const resident = rss()
    const census = await probe.census()
    const seen = await readMetrics(metricsPort)
    return {
      rss: resident,
      heap,
      runs,
      listeners: census.by,
      streams: seen.get('http_open_streams')!,
      driven: seen.get('runs_active{state="active"}')!,
      files: seen.get('process_open_fds')!,
      handles: byLabel(seen, 'nodejs_active_handles'),
      resources: byLabel(seen, 'nodejs_active_resources'),
    }
  }

  async function stop(): Promise<void> {
    probe.close()
    await endProcesses()
    rmSync(home, { recursive: true, force: true })
  }
  return {
    base: server.base,
    errors: server.errors,
    token,
    fresh,
    balance,
    figure,
    metrics: () => readMetrics(metricsPort),
    rss,
    heap: probe.heap,
    listeners: probe.listeners,
    atRest,
    stop,
  }
}
