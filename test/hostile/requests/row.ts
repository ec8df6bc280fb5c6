// What a hostile request is, and how its bytes are put together.
export type Hostile = {
  readonly name: string
  /** Written one after the other, a moment apart. */
  readonly bytes: readonly (string | Buffer)[]
  /** Statuses of the first answer; `close`: the connection may end without one. */
  readonly expect: readonly (number | 'close')[]
  /** What the client does after the last byte: waits for the end, hangs up, or resets. */
  readonly then?: 'hang up' | 'reset'
}

export const end = '\r\n\r\n'
export const close = 'Connection: close'
export const get = (target: string, ...lines: string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', close, ...lines].join('\r\n') + end
export const post = (path: string, body: string | Buffer, ...lines: string[]) => [
  [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    close,
    'Content-Type: application/json',
    ...lines,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ].join('\r\n') + end,
  body,
]
export const login = '/api/v1/auth/login'
export const healthz = '/api/v1/healthz'
export const row = (
  name: string,
  bytes: string | readonly (string | Buffer)[],
  expect: readonly (number | 'close')[],
  then?: Hostile['then'],
): Hostile => ({
  name,
  bytes: typeof bytes === 'string' ? [bytes] : bytes,
  expect,
  ...(then ? { then } : {}),
})

export const framing = (...lines: string[]) =>
  [`POST ${login} HTTP/1.1`, 'Host: x', close, 'Content-Type: application/json', ...lines].join(
    '\r\n',
  ) + end
