// An installation that a real server made, with a bit of everything; what it answers; and the
// command that copies one, which can be killed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Copied } from '../../../plugins/operator/copy/copy.ts'
import { sqliteDocs } from './ballast.ts'
import { commandLine, startProcess, type Process } from '../process.ts'

type Env = Readonly<Record<string, string>>
type Json = Record<string, unknown>
export type Made = {
  readonly apiKey: string
  readonly token: string
  readonly runs: readonly string[]
  readonly sessions: readonly string[]
  readonly uploads: readonly string[]
  readonly artifacts: readonly string[]
  readonly keyed: string
  readonly trimmed: string
}
export type CopyAnswer = Copied & {
  readonly from: string
  readonly stays: readonly string[]
  readonly error?: string
}

const model = 'scripted:?tokens=40&interval_ms=0'
const home = resolve(import.meta.dirname, '../../..')
const keyed = 'a key of before'

async function call(
  server: Process,
  token: string,
  method: string,
  path: string,
  body?: object,
  headers: Env = {},
): Promise<Json> {
  const response = await fetch(server.base + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  assert.ok(response.ok, `${method} ${path}: ${response.status}`)
  return (await response.json()) as Json
}
const textOf = async (server: Process, token: string, path: string) =>
  (await fetch(server.base + path, { headers: { authorization: `Bearer ${token}` } })).text()
/** Heartbeats are no part of it. */
const eventsOf = async (server: Process, token: string, run: string) =>
  (await textOf(server, token, `/runs/${run}/events`))
    .split('\n\n')
    .filter(frame => /^(id|event):/m.test(frame))
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 500, 'it never came')
    await new Promise(done => setTimeout(done, 20))
  }
}
const chat = async (server: Process, token: string, message: string, key?: string) =>
  (await call(server, token, 'POST', '/chat', {
    message,
    ...(key ? { idempotency_key: key } : {}),
  })) as { run_id: string; session_id: string; resumed: boolean }

/**
 * Runs that were trimmed to their end, runs that were compacted, runs as they ended; tools, a
 * refused one, files. Then, with the server stopped, a good many further documents and streams.
 */
export async function makeInstallation(given: Env, ballast: number): Promise<Made> {
  const env = { MODELS_URL: model, RUNS_RETENTION_MS: '50', ...given }
  const ended = async (host: Process, bearer: string, run: string) =>
    void (await eventsOf(host, bearer, run))
  const { api_key: apiKey } = await commandLine<{ api_key: string }>(
    ['admin', 'create-user', '--email', 'ann@example.org', '--credits', '1000'],
    env,
  )
  let server = await startProcess({
    ...env,
    RUNS_COMPACT_AFTER_MS: '0',
    RUNS_EVENTS_KEPT_MS: '100',
  })
  const { access_token: token } = (await (
    await fetch(`${server.base}/auth/token`, { method: 'POST', headers: { 'x-api-key': apiKey } })
  ).json()) as { access_token: string }
  const forgotten = await chat(server, token, 'forget me')
  await until(async () =>
    (await eventsOf(server, token, forgotten.run_id)).some(frame => frame.includes('event: gone')),
  )
  await server.kill('SIGTERM')
  server = await startProcess({ ...env, RUNS_COMPACT_AFTER_MS: '0' })
  const compacted = await chat(server, token, 'make me small')
  await until(async () => {
    const frames = await eventsOf(server, token, compacted.run_id)
    return frames.some(frame => frame.includes('event: done')) && frames.length < 10
  })
  await server.kill('SIGTERM')
  server = await startProcess(env)
  const plain = await chat(server, token, 'hello', keyed)
  const tooled = await chat(server, token, 'count [[tool=calculator {"expression":"6*7"}]]')
  const unicode = await chat(server, token, 'é🦊 "$where": {"a.b": 1} [[text=Zoë says 🦊]]')
  const runs = [forgotten, compacted, plain, tooled, unicode]
  for (const { run_id } of runs) await ended(server, token, run_id)
  const { upload_id: upload } = await call(server, token, 'POST', '/uploads', {
    filename: 'a.txt',
    mime: 'text/plain',
    content_base64: Buffer.from('words in a file '.repeat(20_000)).toString('base64'),
  })
  const artifact = await call(server, token, 'POST', '/artifacts', {
    filename: 'b.md',
    mime: 'text/markdown',
    content: '# Title\n',
    session_id: plain.session_id,
  })
  await until(
    async () =>
      (await call(server, token, 'GET', `/uploads/${String(upload)}`))['status'] !== 'pending',
  )
  await server.kill('SIGTERM')
  await sqliteDocs(join(given['DATA_DIR']!, 'platform.db'), ballast)
  return {
    apiKey,
    token,
    runs: runs.map(({ run_id }) => run_id),
    sessions: runs.map(({ session_id }) => session_id),
    uploads: [String(upload)],
    artifacts: [String(artifact['artifact_id'] ?? artifact['id'])],
    keyed: plain.run_id,
    trimmed: forgotten.run_id,
  }
}

/** Everything that clients can ask for; the token of before must still be good. */
export async function answersOf(
  env: Env,
  { token, runs, sessions, uploads, artifacts, keyed: first }: Made,
): Promise<Json> {
  const server = await startProcess({ MODELS_URL: model, ...env })
  const all = async (paths: readonly string[]) =>
    Promise.all(paths.map(path => textOf(server, token, path)))
  const answers = {
    events: await Promise.all(runs.map(run => eventsOf(server, token, run))),
    balance: await call(server, token, 'GET', '/balance'),
    rest: await all([
      ...sessions.flatMap(id => [
        `/sessions/${id}`,
        `/sessions/${id}/messages`,
        `/sessions/${id}/artifacts`,
      ]),
      ...uploads.flatMap(id => [`/uploads/${id}`, `/uploads/${id}/raw`]),
      ...artifacts.map(id => `/artifacts/${id}`),
      '/sessions?limit=100',
    ]),
  }
  const { told } = await commandLine<{ told: unknown[] }>(['verify'], { MODELS_URL: model, ...env })
  assert.deepEqual(told, [], 'verify is clean')
  const again = await chat(server, token, 'hello', keyed)
  assert.deepEqual(
    [again.run_id, again.resumed],
    [first, true],
    'an idempotency key still answers its run',
  )
  await server.kill('SIGTERM')
  return answers
}

/**
 * `killAt`: ends it with SIGKILL once it has told a line that matches, and so many milliseconds
 * have gone.
 */
export async function copy(
  args: readonly string[],
  env: Env,
  killAt?: { readonly line: RegExp; readonly ms?: number },
): Promise<{ code: number | null; answer: CopyAnswer; err: string }> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      join(home, 'kernel/main.ts'),
      'storage',
      'copy',
      ...args,
      '--json',
    ],
    {
      cwd: home,
      env: { ...process.env, LOG_LEVEL: 'error', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const out: Buffer[] = []
  const err: string[] = []
  child.stdout.on('data', (part: Buffer) => out.push(part))
  createInterface({ input: child.stderr }).on('line', line => {
    err.push(line)
    if (killAt?.line.test(line)) setTimeout(() => child.kill('SIGKILL'), killAt.ms ?? 0)
  })
  await once(child, 'close')
  return {
    code: child.exitCode,
    answer: JSON.parse(Buffer.concat(out).toString() || '{}') as CopyAnswer,
    err: err.join('\n'),
  }
}
