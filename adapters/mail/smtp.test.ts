import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mailKit } from '../../test/conformance/mail.ts'
import { manualClock } from '../clock/manual.ts'
import { smtp, smtpOptionsOf, type SmtpOptions } from './smtp.ts'

const letter = { to: 'ann@example.org', subject: 'Hello', text: 'Hello.' }
const secret = 'correct-horse'

async function server(options: SMTPServerOptions = {}) {
  const letters: string[] = []
  const smtpServer = new SMTPServer({
    authOptional: true,
    logger: false,
    hideSTARTTLS: true,
    closeTimeout: 100,
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        letters.push(Buffer.concat(chunks).toString('utf8'))
        done()
      })
    },
    ...options,
  })
  smtpServer.on('error', () => 'a client that hangs up is what some tests are about')
  smtpServer.listen(0, '127.0.0.1')
  await once(smtpServer.server, 'listening')
  return {
    letters,
    port: (smtpServer.server.address() as AddressInfo).port,
    close: () => new Promise<void>(resolve => smtpServer.close(() => resolve())),
  }
}
function mailer(port: number, options: Partial<SmtpOptions> = {}) {
  const logged: unknown[] = []
  return {
    logged,
    ...smtp({
      host: '127.0.0.1',
      port,
      tls: 'none',
      from: 'Desk <desk@example.org>',
      timeoutMs: 2000,
      clock: manualClock(),
      log: (...line) => logged.push(line),
      ...options,
    }),
  }
}
const unavailable = async (call: Promise<unknown>, why: RegExp): Promise<string> => {
  const error = await call.then(
    () => assert.unreachable(),
    thrown => thrown,
  )
  assert.is(error.code, 'UNAVAILABLE')
  assert.match(error.message, why, error.message)
  return `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`
}

mailKit(test, 'smtp', {
  place: async () => {
    const { letters, port, close } = await server()
    return { open: async () => mailer(port), received: async () => letters, clean: close }
  },
})

test('it signs in; a refused sign-in shows neither password nor user', async () => {
  const { letters, port, close } = await server({
    authOptional: false,
    authMethods: ['PLAIN'],
    allowInsecureAuth: true,
    onAuth: (auth, _session, done) =>
      auth.password === secret
        ? done(null, { user: auth.username! })
        : done(new Error(`no ${auth.username}:${auth.password}`)),
  })
  const right = mailer(port, { user: 'desk', password: secret })
  await right.ping()
  await right.send(letter)
  assert.is(letters.length, 1)
  await right.close()
  const wrong = mailer(port, { user: 'desk-user', password: 'wrong-horse' })
  const told =
    (await unavailable(wrong.send(letter), /refused the sign-in/)) +
    (await unavailable(wrong.ping(), /refused the sign-in/)) +
    JSON.stringify(wrong.logged)
  assert.not.match(told, /wrong-horse|desk-user|ann@example/)
  assert.is(wrong.logged.length, 2)
  await wrong.close()
  await close()
})
test('starttls refuses a server that does not offer it, and an untrusted certificate', async () => {
  const plain = await server({ disabledCommands: ['STARTTLS'] })
  const first = mailer(plain.port, { tls: 'starttls' })
  await unavailable(first.send(letter), /encrypted/)
  await first.close()
  await plain.close()
  const selfSigned = await server({ hideSTARTTLS: false })
  const second = mailer(selfSigned.port, { tls: 'starttls' })
  await unavailable(second.send(letter), /CERT|SELF_SIGNED/)
  assert.is(selfSigned.letters.length, 0)
  await second.close()
  await selfSigned.close()
})
test('a recipient that the server refuses is named by the code alone', async () => {
  const { port, close } = await server({
    onRcptTo: (_to, _session, done) =>
      done(Object.assign(new Error('no ann@example.org here'), { responseCode: 550 })),
  })
  const refusing = mailer(port)
  assert.not.match(
    await unavailable(refusing.send(letter), /refused the sender or the recipient \(550\)/),
    /ann@example/,
  )
  await refusing.close()
  await close()
})
test('a server that is silent, and one that is not there, are given up in time', async () => {
  const silent: Server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const waiting = mailer(port, { timeoutMs: 200 })
  await unavailable(waiting.send(letter), /in time/)
  await waiting.close()
  silent.close()
  const nobody = mailer(port, { timeoutMs: 200 })
  await unavailable(nobody.ping(), /connection failed/)
  await nobody.close()
})
test("an abort ends a call with the signal's reason; closing ends it as UNAVAILABLE", async () => {
  const { port, close } = await server({ onMailFrom: () => {} })
  const waiting = mailer(port)
  const controller = new AbortController()
  const reason = new Error('gone')
  const sending = waiting.send(letter, { signal: controller.signal }).then(
    () => assert.unreachable(),
    error => error,
  )
  setTimeout(() => controller.abort(reason), 50)
  assert.is(await sending, reason)
  const other = unavailable(waiting.send(letter), /closed/)
  setTimeout(() => waiting.close(), 50)
  await other
  await close()
})
test('the URL says it all, and an error about it never quotes it', () => {
  const options = smtpOptionsOf(
    new URL('smtp://us%40er:p%3Aw@mail.example.org?from=Desk%20%3Cdesk@example.org%3E'),
  )
  assert.equal(options, {
    host: 'mail.example.org',
    port: 587,
    tls: 'starttls',
    from: 'Desk <desk@example.org>',
    timeoutMs: 20_000,
    user: 'us@er',
    password: 'p:w',
  })
  assert.is(smtpOptionsOf(new URL('smtp://h:465')).tls, 'implicit')
  assert.is(smtpOptionsOf(new URL('smtp://h?tls=implicit')).port, 465)
  try {
    smtpOptionsOf(new URL('smtp://user:hunter2@h?tls=maybe'))
    assert.unreachable()
  } catch (error) {
    assert.match((error as Error).message, /^tls: must be/)
    assert.not.match((error as Error).message, 'hunter2')
  }
})
test.run()
