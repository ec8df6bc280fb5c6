// Two small plugins, of which one needs the other, and servers that serve them.
import { Type as t } from 'typebox'
import { definePlugin, into, point, service, type Plugin } from '#kernel'
import { contract } from '#contracts/contract.ts'
import { startServer, type TestServer } from '../../conformance/plugin/server.ts'

export const Greeting = service<{ greet(): string }>('greeting')
const Words = point<string>('words')
export const hello = contract({
  'GET /hello': {
    summary: 'Say hello',
    auth: 'public',
    reply: t.Object({ text: t.String(), words: t.Array(t.String()) }),
  },
})

export const greeter = (text: string, trace: string[] = [], wait?: Promise<void>): Plugin =>
  definePlugin({
    name: 'greeter',
    version: '1.0.0',
    kernel: '^1.0.0',
    services: { greeting: () => ({ greet: () => text }) },
    provides: { greeting: Greeting },
    contributes: [into(Words, () => text)],
    start: async ({ defer }) => {
      trace.push(`start ${text}`)
      defer(() => {
        trace.push(`undo first of ${text}`)
      })
      defer(() => {
        trace.push(`undo second of ${text}`)
      })
      await wait
    },
  })
export const speaker = (trace: string[] = [], inside?: () => Promise<void>): Plugin =>
  definePlugin({
    name: 'speaker',
    version: '1.0.0',
    kernel: '^1.0.0',
    contract: hello,
    uses: { greeting: Greeting, words: Words },
    routes: {
      'GET /hello': async ({ greeting, words, signal }) => {
        await inside?.()
        trace.push(`aborted ${signal.aborted}`)
        return { text: greeting.greet(), words: [...words()] }
      },
    },
  })

export const using = async (plugins: Plugin[], run: (server: TestServer) => Promise<void>) => {
  const server = await startServer({ plugins, env: { DRAIN_MS: '2000' } })
  try {
    await run(server)
  } finally {
    await server.stop()
  }
}
export const refusal = async (plugins: Plugin[]): Promise<string> =>
  startServer({ plugins }).then(
    async server => {
      await server.stop()
      return 'it was loaded'
    },
    (error: Error) => error.message,
  )
