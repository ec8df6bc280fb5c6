// Passwords at the sign-in: wrong ones are counted, right ones are not.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf, onIdentity as on, password } from '../../../test/support/identity-kit.ts'

on(
  'after five wrong passwords the account waits, whether it exists or not; a right one ' +
    'clears the count',
  async ({ post, signedUp, clock }) => {
    const { email } = await signedUp()
    for (let n = 0; n < 4; n++) await post('/auth/login', { email, password: 'wrong' })
    assert.is((await post('/auth/login', { email, password })).status, 200)
    for (const who of [email, 'nobody@example.org']) {
      for (let n = 0; n < 5; n++)
        assert.is(
          codeOf(await post('/auth/login', { email: who, password: 'wrong' })),
          'CREDENTIALS_INVALID',
        )
      const throttled = await post('/auth/login', { email: who, password })
      assert.equal([throttled.status, codeOf(throttled)], [429, 'LOGIN_THROTTLED'])
      assert.ok(Number(throttled.headers.get('retry-after')) > 0)
    }
    await clock.leap(60_000)
    assert.is((await post('/auth/login', { email, password })).status, 200)
  },
)
on('many right passwords at the same moment are no guesses', async ({ post, signedUp }) => {
  const { email } = await signedUp()
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => post('/auth/login', { email, password })),
  )
  assert.ok(answers.every(({ status }) => status === 200))
})
test.run()
