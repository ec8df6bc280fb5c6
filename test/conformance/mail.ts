// What every mailer promises. `received`: the letters that arrived, each as RFC 5322 text or as it
// was given.
import assert from 'node:assert/strict'
import type { Email, Mailer } from '#ports/mail.ts'
import { asking, refuses, rejectsWith, type Lacking, type Test, withPlace } from './runner.ts'

/** `letters`: what `received` gives. */
type Kit = Lacking<'letters'> & { place: () => Promise<Place> }
type Place = {
  open(): Promise<Mailer>
  received(): Promise<readonly (Email | string)[]>
  clean?(): Promise<void>
}

const emailGiven: Email = {
  to: 'ann@example.org',
  subject: 'Your code',
  text: 'Your code is 123456.',
}
/** Headers unfolded, encoded words and quoted-printable left as they are. */
const headerOf = (letter: string, name: string): string =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(
    letter.split('\r\n\r\n')[0]!.replace(/\r\n[ \t]/g, ' '),
  )?.[1] ?? ''

export function mailKit(test: Test, name: string, { place, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on = (
    title: string,
    needs: readonly 'letters'[],
    run: (mailer: Mailer, at: Place) => Promise<void>,
  ): void => ask(`${name}: ${title}`, needs, withPlace(place, run))
  on(
    'a letter has arrived when send resolves, to its reader, with its subject and its text',
    ['letters'],
    async (mailer, at) => {
      await mailer.ping()
      await mailer.send(emailGiven)
      const [letter, ...more] = await at.received()
      assert.deepEqual(more, [])
      if (typeof letter !== 'string') return assert.deepEqual(letter, emailGiven)
      assert.equal(headerOf(letter, 'To'), emailGiven.to)
      assert.equal(headerOf(letter, 'Subject'), emailGiven.subject)
      assert.match(headerOf(letter, 'Message-ID'), /^<[^<>@\s]+@[^<>@\s]+>$/)
      assert.ok(Number.isFinite(Date.parse(headerOf(letter, 'Date'))))
      assert.ok(letter.includes(emailGiven.text))
    },
  )
  on(
    'text and HTML travel together, and other alphabets arrive whole',
    ['letters'],
    async (mailer, at) => {
      await mailer.send({
        ...emailGiven,
        subject: 'Réponse — رد',
        text: 'naïve 漢字',
        html: '<p>naïve 漢字</p>',
      })
      const [letter] = await at.received()
      if (typeof letter !== 'string') return assert.equal(letter?.html, '<p>naïve 漢字</p>')
      assert.match(letter, /multipart\/alternative/)
      assert.match(letter, /text\/html/)
      assert.ok(/^[\x00-\x7f]*$/.test(letter))
      const words = [...headerOf(letter, 'Subject').matchAll(/=\?UTF-8\?([BQ])\?([^?]*)\?=/gi)].map(
        ([, kind, word]) =>
          kind!.toUpperCase() === 'B'
            ? Buffer.from(word!, 'base64')
            : Buffer.from(
                word!
                  .replaceAll('_', ' ')
                  .replace(/=([0-9A-F]{2})/g, (_, hex: string) =>
                    String.fromCharCode(Number.parseInt(hex, 16)),
                  ),
                'latin1',
              ),
      )
      assert.equal(Buffer.concat(words).toString('utf8'), 'Réponse — رد')
    },
  )
  on('many letters at once all arrive', ['letters'], async (mailer, at) => {
    await Promise.all(
      Array.from({ length: 25 }, (_, n) => mailer.send({ ...emailGiven, subject: `Letter ${n}` })),
    )
    assert.equal((await at.received()).length, 25)
  })
  const forged = async (mailer: Mailer): Promise<void> => {
    for (const to of [
      '',
      'ann',
      'a@b.example, c@d.example',
      'a@b.example\r\nBcc: c@d.example',
      'Ann <a@b.example>',
      'a@b.example\nX: y',
      'a b@c.example',
      'a@b@c.example',
      `${'a'.repeat(250)}@b.example`,
      'group: a@b.example;',
    ])
      assert.match(await refuses('INVALID_FIELD', () => mailer.send({ ...emailGiven, to })), /^to:/)
    for (const subject of [
      'Hello\r\nBcc: c@d.example',
      'Hello\nthere',
      'Hello\rthere',
      'a\0b',
      'x'.repeat(501),
    ])
      assert.match(
        await refuses('INVALID_FIELD', () => mailer.send({ ...emailGiven, subject })),
        /^subject:/,
      )
  }
  const aborted = async (mailer: Mailer): Promise<void> => {
    const reason = new Error('gone')
    await rejectsWith(reason, () => mailer.send(emailGiven, { signal: AbortSignal.abort(reason) }))
  }
  on('whatever could forge a header or reach another reader is refused', [], forged)
  on("an aborted letter fails with the signal's own reason", [], aborted)
  on('what was refused or aborted is not sent', ['letters'], async (mailer, at) => {
    await forged(mailer)
    await aborted(mailer)
    assert.deepEqual(await at.received(), [])
  })
  on(
    'text that looks like headers or like the end of the letter stays text',
    ['letters'],
    async (mailer, at) => {
      await mailer.send({
        ...emailGiven,
        text: 'Bcc: c@d.example\r\n.\r\nMAIL FROM:<x@y.example>\r\nend',
      })
      const [letter, ...more] = await at.received()
      assert.deepEqual(more, [])
      if (typeof letter !== 'string') return
      assert.equal(headerOf(letter, 'Bcc'), '')
      assert.ok(letter.includes('\r\nMAIL FROM:<x@y.example>\r\nend'))
    },
  )
  on(
    'closed, it refuses; closing twice is allowed; opened again, it serves',
    [],
    async (mailer, at) => {
      await mailer.ping()
      await mailer.close()
      await mailer.close()
      await refuses('UNAVAILABLE', () => mailer.send(emailGiven))
      await refuses('UNAVAILABLE', () => mailer.ping())
      const again = await at.open()
      await again.send(emailGiven)
      await again.close()
    },
  )
  on(
    'a letter arrives also when the mailer was closed and opened again',
    ['letters'],
    async (mailer, at) => {
      await mailer.close()
      const again = await at.open()
      await again.send(emailGiven)
      assert.equal((await at.received()).length, 1)
      await again.close()
    },
  )
}
