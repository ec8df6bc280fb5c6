// The real kernel with the real plugins on in-memory adapters, behind a real socket: what the tests
// of the API talk to.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { boot, type Booted } from '../../../kernel/boot.ts'
import type { Environment } from '../../../kernel/settings/settings.ts'
import type { Plugin } from '../../../kernel/plugin.ts'

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly text: string
}
export type Account = {
  readonly user_id: string
  readonly org_id: string
  readonly api_key: string
  readonly token: string
}
export type TestServer = Awaited<ReturnType<typeof startServer>>
export type SseEvent = {
  readonly id: number
  readonly event: string
  readonly data: Record<string, unknown>
}

/** Reads frames until the stream ends; `stop` may end it earlier. */
export async function readEvents(
  response: Response,
  stop: (event: SseEvent) => boolean = () => false,
): Promise<SseEvent[]> {
  const found: SseEvent[] = []
  let rest = ''
  // 204: nothing is left of the stream.
  if (response.body === null) return found
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + part).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) {
      const field = (name: string) =>
        frame
          .split('\n')
          .find(line => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      if (field('event') === undefined) continue
      const event = {
        id: Number(field('id')),
        event: field('event')!,
        data: JSON.parse(field('data')!) as Record<string, unknown>,
      }
      found.push(event)
      if (stop(event)) return found
    }
  }
  return found
}

const memory = {
  STORAGE_URL: 'memory:',
  BLOBS_URL: 'memory:',
  SEARCH_URL: 'memory:',
  MAIL_URL: 'memory:',
  MODELS_URL: 'scripted:?tokens=5&interval_ms=0',
  LOG_LEVEL: 'error',
}

const living = new Set<() => Promise<void>>()
/** For `test.after`: a server that a failed test left behind would keep its file from ending. */
export async function endServers(): Promise<void> {
  for (const stop of [...living]) await stop()
}

export async function startServer({
  env = {},
  plugins,
  given = {},
}: {
  env?: Environment
  plugins?: readonly Plugin[]
  given?: Readonly<Record<string, unknown>>
} = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-'))
  const logged: string[] = []
  const clean = () => rmSync(dataDir, { recursive: true, force: true })
  const booted: Booted = await boot({
    env: { PORT: '0', HOST: '127.0.0.1', DATA_DIR: dataDir, ...memory, ...env },
    strict: true,
    given,
    write: line => logged.push(line),
    ...(plugins ? { plugins } : {}),
  }).catch((error: unknown) => {
    clean()
    throw error
  })
  const { port } = await booted.kernel.listen()
  const root = `http://127.0.0.1:${port}`
  const base = `${root}/api/v1`

  const call = async (
    method: string,
    path: string,
    {
      token,
      body,
      headers = {},
      raw,
    }: {
      token?: string | undefined
      body?: unknown
      headers?: Record<string, string>
      raw?: Uint8Array | string
    } = {},
  ): Promise<Answer> => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(path.startsWith('/api/') ? root + path : base + path, {
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content as string }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body:
        text && response.headers.get('content-type')?.includes('json')
          ? JSON.parse(text)
          : undefined,
    }
  }
  const stop = async () => {
    living.delete(stop)
    await booted.kernel.stop()
    clean()
  }
  living.add(stop)
  return {
    root,
    base,
    call,
    logged,
    stop,
    kernel: booted.kernel,
    pluginRegistry: booted.pluginRegistry,
    engine: booted.engine,
    dataDir,
    /** A verified account in its own organisation, signed in. */
    async account(
      credits = 1000,
      email = `user-${crypto.randomUUID()}@example.org`,
    ): Promise<Account> {
      const made = (await booted.kernel
        .commands()
        .get('admin create-user')!
        .run({ email, credits })) as Omit<Account, 'token'>
      const { body } = await call('POST', '/auth/token', { body: { api_key: made.api_key } })
      return { ...made, token: (body as { access_token: string }).access_token }
    },
    stream: (token: string, runId: string, headers: Record<string, string> = {}, query = '') =>
      fetch(`${base}/runs/${runId}/events${query}`, {
        headers: { authorization: `Bearer ${token}`, ...headers },
      }),
  }
}
