// What ended runs cost on disk: as they were written, made small, and forgotten but for the end.
//   npm run bench:retention [-- --runs 500 --tokens 400]
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { freePort, signUp, startProcess } from '../support/process.ts'
import { circumstances, writeChapter } from './report.ts'

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '500' }, tokens: { type: 'string', default: '400' } },
})
const runs = Number(values.runs)
const tokens = Number(values.tokens)
const atOnce = 50
const home = mkdtempSync(join(tmpdir(), 'agent-platform-retention-'))
const first = join(home, 'first')
const second = join(home, 'second')
const settings = {
  MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=5`,
  LIMITS_RUNS_PER_SECOND: '100000',
  LIMITS_RUNS_BURST: '100000',
  RUNS_COMPACT_AFTER_MS: '0',
}
const sleeping = { ...settings, RUNS_RETENTION_MS: '100000000' }
const awake = { ...settings, RUNS_RETENTION_MS: '50' }

/** Bytes of the pages in use. */
function usedBytes(dataDir: string): number {
  const db = new DatabaseSync(join(dataDir, 'platform.db'))
  const pragma = (name: string) => Number(Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0])
  const used = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
  db.close()
  return used
}
async function fill(): Promise<number> {
  const env = { ...sleeping, DATA_DIR: first }
  const server = await startProcess(env)
  const { token } = await signUp(server.base, env, runs * 10)
  const before = async () => {
    await server.kill('SIGTERM')
    return usedBytes(first)
  }
  const headers = { authorization: `Bearer ${token}` }
  const one = async () => {
    const { run_id: id } = (await (
      await fetch(`${server.base}/chat`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{"message":"hello"}',
      })
    ).json()) as { run_id: string }
    await (await fetch(`${server.base}/runs/${id}/events`, { headers })).text()
  }
  for (let done = 0; done < runs; done += atOnce)
    await Promise.all(Array.from({ length: Math.min(atOnce, runs - done) }, one))
  return before()
}
/** Starts the server, waits until retention has cared for every run, and stops it. */
async function keep(
  dataDir: string,
  env: Record<string, string>,
  metric: string,
  enough: (value: number) => boolean,
): Promise<number> {
  const port = String(await freePort())
  const server = await startProcess({ ...awake, ...env, DATA_DIR: dataDir, METRICS_PORT: port })
  const figure = async () =>
    Number(
      new RegExp(`^${metric} (\\d+)`, 'm').exec(
        await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      )?.[1] ?? 0,
    )
  for (
    let last = -1, now = await figure();
    !(enough(now) && now === last);
    [last, now] = [now, await figure()]
  )
    await new Promise(resolve => setTimeout(resolve, 500))
  await server.kill('SIGTERM')
  return usedBytes(dataDir)
}

const empty = await (async () => {
  const dataDir = join(home, 'empty')
  const server = await startProcess({ ...sleeping, DATA_DIR: dataDir })
  await server.kill('SIGTERM')
  return usedBytes(dataDir)
})()
const written = await fill()
cpSync(first, second, { recursive: true })
const compacted = await keep(first, {}, 'runs_compacted_total', value => value >= runs)
const trimmed = await keep(
  second,
  { RUNS_EVENTS_KEPT_MS: '1' },
  'runs_events_trimmed_total\\{reason="age"\\}',
  value => value > 0,
)
const each = (bytes: number) => `${((bytes - empty) / runs / 1024).toFixed(1)} KiB`
writeChapter(
  'Retention',
  `${circumstances(`npm run bench:retention -- --runs ${runs} --tokens ${tokens}`)}: ` +
    'SQLite pages in use, divided by the runs; ' +
    `${runs} runs of ${tokens} tokens each, ${atOnce} at a time.

| a run on disk, with its document, ledger entries and indexes | |
|---|---|
| as it was written | ${each(written)} |
| made small (\`RUNS_COMPACT_AFTER_MS\`) | ${each(compacted)} |
| forgotten but for the end (\`RUNS_EVENTS_KEPT_MS\`) | ${each(trimmed)} |`,
)
rmSync(home, { recursive: true, force: true })
