// The server with what the tests of files need beside it: sessions that are whose they say, the
// services, and a look into the blob store.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { definePlugin, into, type Plugin } from '#kernel'
import {
  Artifacts,
  SessionOwners,
  Uploads,
  type ArtifactsApi,
  type UploadsApi,
} from '../../plugins/files/api.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { startServer, type Account, type Answer } from '../conformance/plugin/server.ts'

export const base64 = (content: string | Uint8Array) => Buffer.from(content).toString('base64')
export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex')
export const uploadId = ({ body }: Answer): string => (body as { upload_id: string }).upload_id

/** Blobs are files, so that they can be counted. */
export async function startFiles({
  env = {},
  plugins = [],
  given = {},
}: {
  env?: Record<string, string>
  plugins?: readonly Plugin[]
  given?: Readonly<Record<string, unknown>>
} = {}) {
  const sessions = new Map<string, string>()
  let uploads: UploadsApi | undefined
  let artifacts: ArtifactsApi | undefined
  const beside = definePlugin({
    name: 'beside',
    version: '1.0.0',
    kernel: '^1.0.0',
    uses: { uploads: Uploads, artifacts: Artifacts },
    contributes: [
      into(SessionOwners, () => ({ owns: async ({ userId }, id) => sessions.get(id) === userId })),
    ],
    start: deps => void ({ uploads, artifacts } = deps),
  })
  const server = await startServer({
    plugins: [...(await loadPlugins()), beside, ...plugins],
    env: { BLOBS_URL: 'file:', ...env },
    given,
  })
  const folders = (path: string) =>
    existsSync(path)
      ? readdirSync(path, { recursive: true, withFileTypes: true })
          .filter(entry => entry.isFile())
          .map(({ name }) => name)
      : []
  return {
    ...server,
    uploads: () => uploads!,
    artifacts: () => artifacts!,
    sessionOf({ user_id: userId }: Account): string {
      const id = crypto.randomUUID()
      sessions.set(id, userId)
      return id
    },
    /** Of everybody, half written ones too. */
    blobs: () => folders(join(server.dataDir, 'blobs')).sort(),
    upload: (
      { token }: Account,
      content: string | Uint8Array,
      more: object = {},
    ): Promise<Answer> =>
      server.call('POST', '/uploads', {
        token,
        body: { filename: 'a.txt', mime: 'text/plain', content_base64: base64(content), ...more },
      }),
    async read({ token }: Account, uploaded: Answer): Promise<Record<string, unknown>> {
      const { body } = await server.call('GET', `/uploads/${uploadId(uploaded)}`, { token })
      return body as Record<string, unknown>
    },
  }
}
export type FilesServer = Awaited<ReturnType<typeof startFiles>>

/**
 * Sends the parts and then nothing; answers the response, if there is one before the body has
 * ended.
 */
export function beginUpload(
  { base }: { readonly base: string },
  { token }: Account,
  headers: Readonly<Record<string, string>>,
  parts: readonly string[],
) {
  const sending = request(`${base}/uploads`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    sending.once('response', resolve).once('error', reject),
  )
  answered.catch(() => 'a client that goes away on purpose gets an error')
  for (const part of parts) sending.write(part)
  return { sending, answered }
}

/** Asks until it holds; the runner's time limit is the bound. */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await new Promise(resolve => setTimeout(resolve, 10))
}
