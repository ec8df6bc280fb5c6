// Which words of a text a query means, in each language.
import assert from 'node:assert/strict'
import type { Passages } from '#ports/search.ts'
import { idsOf, index, type On } from './common.ts'

export function languages(on: On): void {
  on('words are found in their other forms, in each language by its own rules', wordForms)
}

async function wordForms(passages: Passages): Promise<void> {
  const found = async (text: string) => (await idsOf(passages, 'l', { text })).sort()
  await passages.define('l', { languages: ['en', 'fr', 'de', 'ar'] })
  await index(passages, 'l', [
    {
      id: 'en',
      text: 'The children were running through the libraries of the old university on a rainy day',
    },
    {
      id: 'fr',
      text: "Les chevaux couraient dans la forêt pendant l'été, et les enfants les regardaient",
    },
    {
      id: 'de',
      text: 'Die Bücher lagen auf den Tischen in der großen Straße, und niemand hat sie gelesen',
    },
    { id: 'ar', text: 'كانت المكتبات مفتوحة طوال اليوم والطلاب يقرؤون الكتب' },
    { id: 'ja', text: '東京都の図書館で本を読む', language: 'en' },
    { id: 'said', text: 'running', language: 'de' },
  ])
  const { hits } = await passages.query('l', {
    text: 'libraries chevaux Bücher المكتبات',
    limit: 10,
  })
  assert.deepEqual(hits.map(({ id, language }) => `${id} ${language}`).sort(), [
    'ar ar',
    'de de',
    'en en',
    'fr fr',
  ])
  for (const [text, ids] of [
    ['library', ['en']],
    ['RUNS', ['en']],
    ['universities', ['en']],
    ['cheval', ['fr']],
    ['foret', ['fr']],
    ['FORÊTS', ['fr']],
    ['Buch', ['de']],
    ['buchern', ['de']],
    ['strasse', ['de']],
    ['STRAẞE', ['de']],
    ['مكتبة', ['ar']],
    ['図書館', ['ja']],
    ['京都', ['ja']],
    ['ｌｉｂｒａｒｙ', ['en']],
  ] as const)
    assert.deepEqual(await found(text), ids, text)
  for (const text of ['the', 'and the of', 'les et', '', ' ', '…?!'])
    assert.deepEqual(await found(text), [], text)
}
