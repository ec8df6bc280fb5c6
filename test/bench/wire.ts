// Many connections from one process, over node:http: cheaper for the load client than fetch is.
import { Agent, request, type IncomingMessage } from 'node:http'

export type Frame = { readonly id: number; readonly type: string; readonly data: string }
export type Wire = ReturnType<typeof createWire>

/** `base` with the version's path. Connections are kept and used again, the last one first. */
export function createWire(base: string, tokenOf: () => string) {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })
  const send = (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ) =>
    new Promise<IncomingMessage>((answered, failed) => {
      request(
        base + path,
        {
          method,
          agent,
          headers: {
            authorization: `Bearer ${tokenOf()}`,
            ...headers,
            ...(body === undefined
              ? {}
              : {
                  'content-type': 'application/json',
                  'content-length': String(Buffer.byteLength(body)),
                }),
          },
        },
        answered,
      )
        .on('error', failed)
        .end(body)
    })
  const textOf = async (response: IncomingMessage) => {
    const parts: string[] = []
    response.setEncoding('utf8')
    for await (const part of response) parts.push(part as string)
    return parts.join('')
  }
  return {
    /** An event stream; `last` is the cursor. */
    open: (runId: string, last = 0) =>
      send('GET', `/runs/${runId}/events`, last > 0 ? { 'last-event-id': String(last) } : {}),
    async post<T>(path: string, body: object = {}): Promise<T> {
      const response = await send('POST', path, {}, JSON.stringify(body))
      const text = await textOf(response)
      if (response.statusCode !== 200)
        throw new Error(
          `POST ${path.replace(/[0-9a-f-]{36}/, '…')}: ${response.statusCode} ` +
            `${text.slice(0, 200)}`,
        )
      return JSON.parse(text) as T
    },
    /** Every frame of a stream to its end, wherever that is. */
    async frames(response: IncomingMessage, take: (frame: Frame) => void): Promise<void> {
      if (response.statusCode !== 200)
        throw new Error(
          `GET events: ${response.statusCode} ${(await textOf(response)).slice(0, 200)}`,
        )
      response.setEncoding('utf8')
      let rest = ''
      for await (const part of response) {
        const text = rest + (part as string)
        const whole = text.lastIndexOf('\n\n') + 2
        for (const [, id, type, data] of text
          .slice(0, whole)
          .matchAll(/^id: (\d+)\nevent: (\w+)\ndata: (.*)$/gm))
          take({ id: Number(id), type: type!, data: data! })
        rest = text.slice(whole)
      }
    },
    close: () => agent.destroy(),
  }
}
