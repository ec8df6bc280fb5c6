// The main job before the reader's eyes: start, account, run, cut, resume, balance.
//   npm run demo            leaves the server up
//   npm run demo -- --exit  ends after the job; exit code 0 only when every step was seen to work
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const home = resolve(import.meta.dirname, '../..')
const main = join(home, 'kernel/main.ts')
const exits = process.argv.includes('--exit')
const say = (text: string) => process.stdout.write(text)
const step = (text: string) => say(`\n\u001b[1m▸ ${text}\u001b[0m\n`)
const expect = (holds: boolean, what: string) => {
  if (!holds) throw new Error(`This did not hold: ${what}.`)
}

const question =
  `What does a run survive, and who pays for it?

A run is one unit of an agent's work. A run survives the client's disconnection, because its ` +
  'events are kept on disk before anyone sees them. It also survives a crash of the server: ' +
  'another process takes over from the journal. Credits are set aside before any work starts, ' +
  'and only what was used is taken at the end. The organisation pays for a run, never the ' +
  'visitor. The moon is not involved.'

/** Starts the embedded default on the first free port of the two. */
async function startServer(dataDir: string): Promise<{ base: string; child: ChildProcess }> {
  for (const port of [process.env['PORT'] ?? '8080', '0']) {
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', main, 'start'],
      {
        cwd: home,
        env: {
          ...process.env,
          PORT: port,
          HOST: '127.0.0.1',
          DATA_DIR: dataDir,
          LOG_LEVEL: 'warn',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    child.stderr!.on('data', (part: Buffer) => {
      if (!String(part).includes('EADDRINUSE')) process.stderr.write(part)
    })
    const base = await new Promise<string | undefined>(found => {
      createInterface({ input: child.stdout! }).on('line', line => {
        const url = /Serving (\S+)/.exec(line)?.[1]
        if (url) found(url)
      })
      child.once('exit', () => found(undefined))
    })
    if (base) return { base, child }
  }
  throw new Error('The server did not start; its message stands above.')
}

type Seen = { id: number; event: string; data: Record<string, unknown> }
/**
 * Prints the answer as it comes. `cutAfter`: our own connection is torn down after so many events.
 */
async function read(
  url: string,
  token: string,
  after: number,
  cutAfter = Number.POSITIVE_INFINITY,
): Promise<Seen[]> {
  const abort = new AbortController()
  const seen: Seen[] = []
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(after > 0 ? { 'last-event-id': String(after) } : {}),
    },
    signal: abort.signal,
  })
  expect(response.ok, `GET ${url} answers ${response.status}`)
  let rest = ''
  try {
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + part).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames) {
        const [, id, event, data] = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/s.exec(frame) ?? []
        if (!event) continue
        seen.push({ id: Number(id), event, data: JSON.parse(data!) as Record<string, unknown> })
        if (event === 'token') say(String(seen.at(-1)!.data['text']))
        if (seen.length >= cutAfter) {
          abort.abort()
          return seen
        }
      }
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error
  }
  return seen
}

async function job(root: string, dataDir: string): Promise<{ apiKey: string; sessionId: string }> {
  const call = async <T>(
    method: string,
    path: string,
    bearer?: string,
    body?: unknown,
  ): Promise<T> => {
    const response = await fetch(root + path, {
      method,
      headers: {
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const answer = (await response.json()) as T
    expect(response.ok, `${method} ${path} answers ${response.status} ${JSON.stringify(answer)}`)
    return answer
  }
  step('An account with 100 credits, in its own organisation, made while the server runs')
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      main,
      'admin',
      'create-user',
      '--email',
      `demo-${Date.now()}@example.org`,
      '--credits',
      '100',
      '--json',
    ],
    { cwd: home, env: { ...process.env, DATA_DIR: dataDir } },
  )
  const { api_key: apiKey, user_id: userId } = JSON.parse(stdout) as {
    api_key: string
    user_id: string
  }
  say(`user ${userId}, API key ${apiKey.slice(0, 14)}…\n`)

  const { access_token: token } = await call<{ access_token: string }>(
    'POST',
    '/auth/token',
    undefined,
    { api_key: apiKey },
  )
  const balance = async () => (await call<{ balance: number }>('GET', '/balance', token)).balance
  const before = await balance()
  say(`balance before: ${before} credits\n`)
  expect(before === 100, 'the balance is 100')

  step('A run, streamed while it happens; our connection is cut in the middle')
  const started = await call<{ run_id: string; session_id: string; status: string }>(
    'POST',
    '/chat',
    token,
    { message: question, idempotency_key: 'demo' },
  )
  expect(started.status === 'running', 'the run starts at once')
  const events = `${root}/runs/${started.run_id}/events`
  const first = await read(events, token, 0, 12)
  say('\u001b[31m ✂ connection cut \u001b[0m')
  expect(first.length === 12, 'twelve events came before the cut')
  await new Promise(fulfil => setTimeout(fulfil, 300))
  say(`\u001b[32m ↻ resumed after event ${first.at(-1)!.id} \u001b[0m`)
  const rest = await read(events, token, first.at(-1)!.id)
  expect(
    rest.length > 0 && rest[0]!.id > first.at(-1)!.id,
    'the stream goes on right after the cursor',
  )
  expect(rest.at(-1)!.event === 'done', 'the run ends with done')

  const whole = await (
    await fetch(events, { headers: { authorization: `Bearer ${token}` } })
  ).text()
  expect(
    [...whole.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)).join() ===
      [...first, ...rest].map(({ id }) => id).join(),
    'both parts together are exactly the whole stream',
  )
  say('\n\nNothing lost, nothing twice: both parts together are the whole stream.\n')

  step('What it cost')
  const usage = rest.find(({ event }) => event === 'usage')!.data
  const after = await balance()
  say(
    `${usage['total_tokens']} tokens, ${usage['credits']} credit(s); balance after: ` +
      `${after} credits\n`,
  )
  expect(
    after === before - (usage['credits'] as number) && after < before,
    'exactly what the usage says was taken',
  )
  const again = await call<{ run_id: string; resumed: boolean }>('POST', '/chat', token, {
    message: question,
    idempotency_key: 'demo',
  })
  expect(
    again.resumed && again.run_id === started.run_id && (await balance()) === after,
    'the same idempotency key answers the same run and costs nothing',
  )
  say('The same request again answers the same run and costs nothing.\n')
  return { apiKey, sessionId: started.session_id }
}

const dataFolder =
  process.env['DATA_DIR'] ??
  (exits ? mkdtempSync(join(tmpdir(), 'agent-platform-demo-')) : join(home, 'data/demo'))
step(`The embedded default: one process, no service (data in ${dataFolder})`)
const { base, child } = await startServer(dataFolder)
say(`${base}\n`)
const end = () =>
  new Promise<void>(ended => {
    child.once('exit', () => ended())
    child.kill('SIGTERM')
  })
try {
  const { apiKey, sessionId } = await job(base, dataFolder)
  if (exits) await end()
  else {
    step('The server stays up (Ctrl-C ends it). To go on, paste:')
    const valueOf = (field: string) => `sed 's/.*"${field}":"\\([^"]*\\).*/\\1/'`
    const body = JSON.stringify({ message: 'Tell me more.', session_id: sessionId })
    say(
      `
TOKEN=$(curl -s -X POST ${base}/auth/token -H 'X-API-Key: ${apiKey}' | ${valueOf('access_token')})
RUN=$(curl -s ${base}/chat -H "Authorization: Bearer $TOKEN" ` +
        `-H 'Content-Type: application/json' -d '${body}' | ${valueOf('run_id')})
curl -N ${base}/runs/$RUN/events -H "Authorization: Bearer $TOKEN"

The whole API to read: ${base}/docs
`,
    )
    process
      .on('SIGINT', () => void end().then(() => process.exit(0)))
      .on('SIGTERM', () => void end().then(() => process.exit(0)))
  }
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`)
  await end()
  process.exitCode = 1
}
