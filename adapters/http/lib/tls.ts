// Reads certificates, and redirects the plain port to the encrypted one.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { fault } from '#contracts/faults.ts'
import { lazyRequire } from '../../_shared/lazy-require.ts'
import { isHost, readTarget } from './request-target.ts'

const { createServer } = lazyRequire('node:http') as typeof import('node:http')

export type KeyPair = {
  readonly cert: Buffer
  readonly key: Buffer
  readonly minVersion: 'TLSv1.2'
}

/**
 * Throws INVALID_FIELD with the setting's name. Certificate and key are matched here, before the
 * first client connects.
 */
export function readTls({ cert, key }: { readonly cert: string; readonly key: string }): KeyPair {
  const read = (field: string, path: string) => {
    try {
      return readFileSync(path)
    } catch (cause) {
      throw fault(
        'INVALID_FIELD',
        { field, why: `${path} cannot be read (${(cause as NodeJS.ErrnoException).code})` },
        { cause },
      )
    }
  }
  const pair = {
    cert: read('TLS_CERT', cert),
    key: read('TLS_KEY', key),
    minVersion: 'TLSv1.2' as const,
  }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: 'TLS_CERT', why: 'and TLS_KEY must be a certificate and its own key, in PEM' },
      { cause },
    )
  }
  return pair
}

/**
 * The name in a Host header, if the certificate is for it. So no client is redirected to a foreign
 * place.
 */
function ownName(certificate: X509Certificate, host: string): string | undefined {
  if (host === '' || !isHost(host)) return undefined
  const name = host.replace(/:\d{1,5}$/, '')
  const bare = name.replace(/^\[|\]$/g, '')
  return (isIP(bare) ? certificate.checkIP(bare) : certificate.checkHost(bare)) ? name : undefined
}

type Redirect = {
  readonly cert: Buffer
  /** The host of every redirect, whatever the request's Host. */
  readonly host?: string | undefined
  readonly target: () => number
  readonly silenceMs: number
  readonly onError: (error: unknown) => void
  /** Called for a connection that sends many requests. Only its first request is answered. */
  readonly onFlood: (socket: Socket) => void
}
/** Further requests on one connection that are ignored. A client learns from the first answer. */
const ignoredMax = 16

/** Answers 308 to the same path over TLS, and 400 for a name that is not ours. */
export function createRedirect(parts: Redirect): Server {
  const { cert, host, target, silenceMs, onError, onFlood } = parts
  const certificate = new X509Certificate(cert)
  const requests = new WeakMap<Socket, number>()
  const isFirst = (socket: Socket): boolean => {
    const before = requests.get(socket) ?? 0
    requests.set(socket, before + 1)
    if (before === ignoredMax) onFlood(socket)
    return before === 0
  }
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    if (!isFirst(request.socket)) return
    const name = host ?? ownName(certificate, request.headers.host ?? '')
    response.setHeader('connection', 'close')
    try {
      const { path, query } = readTarget(request)
      if (name === undefined || path === '*')
        throw fault('MALFORMED_REQUEST', { why: 'this server has no such name' })
      const port = target() === 443 ? '' : `:${target()}`
      response.writeHead(308, { location: `https://${name}${port}${path}${query && `?${query}`}` })
      response.end()
    } catch (error) {
      const { message: detail, code, status } = error as Error & { code: string; status: number }
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
      response.end(JSON.stringify({ detail, code, request_id: '' }))
    }
  })
  server.setTimeout(silenceMs)
  return server
    .on('connection', socket => socket.on('error', () => socket.destroy()))
    .on('error', onError)
}
