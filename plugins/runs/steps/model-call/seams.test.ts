// How new text joins the text that stays: what comes again is dropped, and nothing else.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createRepeat, createSeam, isDiffering, type Seam } from './resume-plan.ts'

const through = (seam: Seam, pieces: readonly string[]) =>
  [...pieces.map(piece => seam.push(piece)), seam.end()].join('')
const seamed = (kept: string, pieces: readonly string[]) => through(createSeam(kept), pieces)
const repeated = (seen: string, pieces: readonly string[], fromStart = true) =>
  through(createRepeat(seen, { fromStart }), pieces)

test('a continuation that repeats the end of what stands is joined without a seam', () => {
  const kept = 'The lighthouse of the northern harbour was built in '
  assert.is(seamed(kept, ['was built in 1907.']), '1907.')
  assert.is(seamed(kept, ['of the nor', 'thern harbour was ', 'built in 19', '07.']), '1907.')
  assert.is(seamed(kept, ['1907.']), '1907.')
  assert.is(seamed('It is real', ['really so.']), 'really so.', 'a few letters are an accident')
  assert.is(seamed('', ['1907.']), '1907.')
})
test('a continuation that begins again is joined where it comes to what is new', () => {
  assert.is(seamed('It is', ['It ', 'is so.']), ' so.')
  const kept = Array.from({ length: 60 }, (_, n) => `sentence ${n} `).join('')
  assert.is(seamed(kept, [`${kept}and on`]), 'and on')
  assert.is(seamed(kept, [...`${kept}and on`].map(String)), 'and on')
  assert.is(
    seamed(kept, ['sentence 0 was the first.']),
    'sentence 0 was the first.',
    'the same few words are no new beginning',
  )
  assert.throws(() => seamed(kept, [`${kept.slice(0, 60)}in other words`]), isDiffering)
})
test('a seam loses and adds nothing for any cut; the longest repetition counts', () => {
  const words = fc
    .array(fc.constantFrom('the harbour ', 'was dredged ', 'in the year ', 'of '), {
      maxLength: 30,
      size: 'max',
    })
    .map(list => list.join(''))
  fc.assert(
    fc.property(
      words,
      words,
      fc.nat(250),
      fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }),
      (kept, rest, back, cuts) => {
        const overlap = kept.slice(Math.max(0, kept.length - back))
        const said = overlap + rest
        const pieces: string[] = []
        let at = 0
        for (const cut of cuts) pieces.push(said.slice(at, (at += cut)))
        pieces.push(said.slice(at))
        const told = (act: () => string) => {
          try {
            return act()
          } catch (error) {
            assert.ok(isDiffering(error))
            return undefined
          }
        }
        const shown = told(() => seamed(kept, pieces))
        assert.is(
          shown,
          told(() => seamed(kept, [said])),
          'pieces do not matter',
        )
        if (shown === undefined) return void assert.ok(said.slice(0, 40) === kept.slice(0, 40))
        assert.ok(said.endsWith(shown))
        const dropped = said.slice(0, said.length - shown.length)
        assert.ok(kept.endsWith(dropped))
        assert.ok(
          dropped === '' || dropped === kept || (dropped.length >= 12 && dropped.length <= 200),
        )
        if (overlap.length >= 12 && overlap.length <= 200)
          assert.ok(dropped.length >= overlap.length)
      },
    ),
  )
})
test('what comes is held back only until the seam can be told', () => {
  const seam = createSeam('The lighthouse of the northern harbour was built in ')
  assert.equal(
    [seam.holds(), seam.push('the '), seam.holds(), seam.push('north'), seam.holds()],
    [false, '', true, '', true],
  )
  assert.equal(
    [seam.push(' it was'), seam.holds(), seam.push('.')],
    ['the north it was', false, '.'],
    'nothing that stands goes on like that',
  )
  assert.is(createSeam('x').push('a'), 'a')
})
test('what comes again is dropped only if it is the same to the last character', () => {
  assert.is(repeated('one two', ['one', ' two three']), ' three')
  assert.is(repeated('one two', ['one two']), '')
  assert.is(
    repeated('one two', ['\n', '\none two.']),
    '.',
    'line breaks in front count for nothing',
  )
  assert.is(repeated('\n two', ['\n two.'], false), '.', 'in the middle they do')
  for (const pieces of [['one or two'], ['one'], ['another']])
    assert.throws(() => repeated('one two', pieces), isDiffering)
  const seam = createRepeat('one', { fromStart: true })
  assert.equal(
    [seam.holds(), seam.push('on'), seam.holds(), seam.push('e!'), seam.holds()],
    [true, '', true, '!', false],
  )
})

test.run()
