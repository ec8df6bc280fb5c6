// A plugin that is a guest: the ports as it sees them, and servers that serve others beside it.
import type { Plugin } from '#kernel'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { scopedPort } from '../../../kernel/scoped-ports/face.ts'
import { startServer, type TestServer } from '../../conformance/plugin/server.ts'

export const base = { version: '1.0.0', kernel: '^1.0.0' } as const
export const refusal = (act: () => unknown) =>
  (async () => act())().then(
    () => 'allowed',
    (error: Error) => error.message,
  )
export const using = async (
  plugins: readonly Plugin[],
  act: (server: TestServer) => Promise<void>,
  env = {},
) => {
  const server = await startServer({ plugins: [...(await loadPlugins()), ...plugins], env })
  await act(server)
  await server.stop()
}
export const engineOf = <T>(
  server: TestServer,
  name: string,
  plugin: Partial<Plugin>,
  wait?: () => number,
) =>
  scopedPort(`port:${name}`, server.engine(name), { name: 'guest', ...base, ...plugin }, wait) as T
