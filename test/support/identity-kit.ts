// The server with what the tests of identity need beside it: its time, its letters and sign-ins.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryMail } from '#adapters/mail/memory.ts'
import { startServer, type Answer } from '../conformance/plugin/server.ts'

type Environment = Readonly<Record<string, string>>
export type Pair = {
  readonly access_token: string
  readonly refresh_token: string
  readonly token_type: string
  readonly expires_in: number
}
export const password = 'correct horse battery'
export const codeOf = ({ body }: Answer): string => (body as { code: string }).code
/** Six digits that are not the code's. */
export const wrongCode = (code: string): string =>
  String((Number(code) + 1) % 1_000_000).padStart(6, '0')

/** A server whose time and letters the test holds. */
export async function startIdentity(env: Environment = {}) {
  const clock = manualClock()
  const mail = memoryMail()
  const server = await startServer({
    given: { clock, mail },
    env: { LIMITS_REGISTER_PER_HOUR: '1000', LIMITS_TOKEN_PER_MINUTE: '1000', ...env },
  })
  const codeFor = (email: string): string =>
    /\d{6}/.exec(mail.letters.findLast(({ to }) => to === email)?.text ?? '')?.[0] ?? ''
  return { server, clock, mail, codeFor }
}

/** Declares tests that each get a place of their own, whose server stops when they end. */
export const testsOn =
  <Place extends { readonly server: { stop(): Promise<unknown> } }>(
    open: (env?: Environment) => Promise<Place>,
  ) =>
  (title: string, run: (place: Place) => Promise<void>, env?: Environment): void =>
    test(title, async () => {
      const place = await open(env)
      await run(place).finally(() => place.server.stop())
    })

/** Tests of who calls as a browser does: registers, signs in, and asks who it is. */
export const onIdentity = testsOn(async env => {
  const place = await startIdentity(env)
  const { server, clock, codeFor } = place
  const post = (path: string, body?: unknown, token?: string): Promise<Answer> =>
    server.call('POST', path, { body, token })
  const signedUp = async (
    email = `${clock.id()}@example.org`,
  ): Promise<Pair & { email: string }> => {
    assert.is((await post('/auth/register', { email, password })).status, 202)
    const { status, body } = await post('/auth/verify', { email, code: codeFor(email) })
    assert.is(status, 200)
    return { ...(body as Pair), email }
  }
  const me = (token: string) => server.call('GET', '/auth/me', { token })
  return { ...place, post, signedUp, me }
})
