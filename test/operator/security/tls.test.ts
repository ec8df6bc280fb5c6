// HTTPS by two settings, plain HTTP redirected, and metrics on a port of their own.
import { mkdtempSync, rmSync } from 'node:fs'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type SecureVersion } from 'node:tls'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { selfSigned, whereOpenssl } from '../../support/certificate.ts'
import { endProcesses, freePort, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-tls-'))

whereOpenssl(test)('the API speaks TLS 1.2 or newer, and plain HTTP is sent there', async () => {
  const { cert, key } = selfSigned(home, 'DNS:localhost,DNS:*.example.org,IP:127.0.0.1')
  const redirectPort = await freePort()
  const server = await startProcess({
    DATA_DIR: join(home, 'data'),
    TLS_CERT: cert,
    TLS_KEY: key,
    TLS_REDIRECT_PORT: String(redirectPort),
    HTTP_HEAD_MS: '1000',
  })
  const answer = await new Promise<IncomingMessage>((done, failed) =>
    get(
      `https://127.0.0.1:${server.port}/api/v1/healthz`,
      { rejectUnauthorized: false },
      response => {
        response.resume()
        done(response)
      },
    ).on('error', failed),
  )
  assert.is(answer.statusCode, 200)
  assert.match(answer.headers['strict-transport-security'] ?? '', /^max-age=\d{7,}$/)
  // Without SECLEVEL=0 this client would refuse the old versions by itself, and prove nothing.
  const speaks = (version: SecureVersion) =>
    new Promise<string>(done => {
      const socket = connect({
        port: server.port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        minVersion: version,
        maxVersion: version,
        ciphers: 'DEFAULT@SECLEVEL=0',
      })
      socket
        .on('secureConnect', () => {
          done(socket.getProtocol()!)
          socket.destroy()
        })
        .on('error', (error: NodeJS.ErrnoException) => done(error.code!))
    })
  assert.equal(
    [
      await speaks('TLSv1.3'),
      await speaks('TLSv1.2'),
      await speaks('TLSv1.1'),
      await speaks('TLSv1'),
    ],
    [
      'TLSv1.3',
      'TLSv1.2',
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    ],
  )
  // What is no TLS is let go of at once, and a greeting that stops is not waited for; neither ends
  // the process.
  for (const bytes of [
    'GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    Buffer.from('16030100050100000103', 'hex'),
    Buffer.alloc(3000),
    '',
  ]) {
    const socket = connectPlain(server.port, '127.0.0.1')
    const gone = new Promise(done =>
      socket
        .on('error', () => undefined)
        .on('close', done)
        .resume(),
    )
    if (bytes.length > 0) socket.write(bytes)
    await gone
  }
  const asked = (target: string, host: string) =>
    new Promise<{ status: number; location: string | undefined }>((done, failed) =>
      getPlain(
        { host: '127.0.0.1', port: redirectPort, path: target, headers: { host } },
        response => {
          response.resume()
          done({ status: response.statusCode!, location: response.headers.location })
        },
      ).on('error', failed),
    )
  for (const host of ['127.0.0.1', 'localhost', 'api.example.org'])
    assert.equal(await asked('/api/v1/models?x=1', `${host}:${redirectPort}`), {
      status: 308,
      location: `https://${host}:${server.port}/api/v1/models?x=1`,
    })
  for (const host of [
    'evil.example.com',
    'api.example.org.evil.com',
    'evil.com/api.example.org',
    '[',
    'x@localhost',
    '127.0.0.2',
  ])
    assert.equal(await asked('/', host), { status: 400, location: undefined }, host)
  assert.equal(
    await asked('//evil.example.com/', 'localhost'),
    { status: 308, location: `https://localhost:${server.port}//evil.example.com/` },
    'a path stays one',
  )
  assert.is(
    (await asked('http://evil.example.com/', 'localhost')).location,
    `https://localhost:${server.port}/`,
  )
  const heardFrom = (localAddress: string, count: number) =>
    new Promise<string>(done => {
      let text = ''
      const socket = connectPlain({ port: redirectPort, host: '127.0.0.1', localAddress })
      socket.on('data', part => {
        text += part.toString('latin1')
      })
      socket.on('error', () => undefined).on('close', () => done(text))
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(count))
    })
  const answersIn = (text: string) => text.split('HTTP/1.1 308').length - 1
  assert.is(answersIn(await heardFrom('127.0.0.2', 3)), 1, 'only the first is answered')
  await heardFrom('127.0.0.2', 200)
  assert.is(answersIn(await heardFrom('127.0.0.2', 1)), 0, 'a flood shuts its address out')
  assert.is(answersIn(await heardFrom('127.0.0.3', 1)), 1, 'and no other')
  await server.kill('SIGTERM')
})

test('METRICS_PORT serves the metrics there, and no longer beside the API', async () => {
  const port = await freePort()
  const server = await startProcess({ DATA_DIR: join(home, 'metrics'), METRICS_PORT: String(port) })
  assert.match(
    await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
    /^http_open_streams 0$/m,
  )
  assert.is((await fetch(`http://127.0.0.1:${port}/other`)).status, 404)
  assert.is((await fetch(`${server.base}/metrics`)).status, 404)
  await server.kill('SIGTERM')
})

test('METRICS_PORT listens where HOST says; either port asks for METRICS_TOKEN', async () => {
  const port = await freePort()
  const token = 'a-token-for-the-metrics'
  const authorization = `Bearer ${token}`
  const server = await startProcess({
    DATA_DIR: join(home, 'metrics-token'),
    METRICS_PORT: String(port),
    METRICS_TOKEN: token,
  })
  // Another loopback address (RFC 1122, section 3.2.1.3) reaches what listens on all of them.
  await fetch(`http://127.0.0.2:${port}/metrics`).then(
    () => assert.unreachable('on all addresses'),
    (error: Error) => assert.match(String(error.cause), /ECONNREFUSED/),
  )
  const statuses = await Promise.all(
    [undefined, 'Bearer x', `Basic ${token}`, authorization].map(
      async header =>
        (
          await fetch(
            `http://127.0.0.1:${port}/metrics`,
            header ? { headers: { authorization: header } } : {},
          )
        ).status,
    ),
  )
  assert.equal(statuses, [401, 401, 401, 200])
  await server.kill('SIGTERM')
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
