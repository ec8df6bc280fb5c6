import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Message } from '#ports/models.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import { offline } from './offline.ts'

const model = offline({ clock: systemClock(), intervalMs: 0 })
const contract = {
  name: 'contract.txt',
  text:
    'This contract binds the parties. It starts on 1 May 2025. The agreement ends on 30 ' +
    'April 2027, unless renewed.\nPayment is due within thirty days. The weather is nice.',
}
const bail = {
  name: 'bail.txt',
  text:
    "Le bailleur loue un appartement. Le dépôt de garantie s'élève à deux mois de loyer. Les " +
    'clés sont remises le lundi.',
}
const tool = (name: string, parameters = {}) => ({ name, description: '', parameters })
const ask = async (content: string, asked = {}): Promise<string> =>
  textOf(await deltasOf(model, content, asked))

modelsKit(test, 'offline', {
  open: async () => offline({ clock: systemClock(), intervalMs: 0 }),
  long: 'What are you?',
  tool: 'Please use the tool add with {"a":1}.',
})

test('it quotes the sentence that answers, with the name of its source', async () => {
  assert.match(
    await ask('When does the agreement end?', { attachments: [contract, bail] }),
    '> The agreement ends on 30 April 2027, unless renewed.\n— contract.txt',
  )
  const french = await ask('Quel est le montant du dépôt de garantie ?', {
    attachments: [contract, bail],
  })
  assert.match(french, "> Le dépôt de garantie s'élève à deux mois de loyer.\n— bail.txt")
  assert.match(french, /^Voici les passages/)
})
test('it finds words whatever their accents, their ending or their script', async () => {
  assert.match(await ask('renewals of agreements?', { attachments: [contract] }), 'unless renewed')
  assert.match(await ask('depot', { attachments: [bail] }), 'dépôt de garantie')
  assert.match(
    await ask('押金是多少？', {
      attachments: [{ name: '租约', text: '房东出租公寓。押金为两个月租金。钥匙周一交付。' }],
    }),
    '> 押金为两个月租金。\n— 租约',
  )
})
test('it says so when nothing matches, and names what it searched', async () => {
  assert.match(
    await ask('Elephants?', { attachments: [contract] }),
    /searched contract\.txt and found no sentence/,
  )
})
test('without material it says what it is, its limits and how to connect a model', async () => {
  for (const answer of [
    await ask('Hello there'),
    await ask('Bonjour, que savez-vous faire pour moi ?'),
  ]) {
    assert.match(answer, 'MODELS_URL')
    assert.match(answer, /not a language model|pas un modèle de langage/)
  }
  const [one] = await model.catalogue()
  assert.match(one!.description, /^Not a language model/)
})
test('it remembers what the user said before', async () => {
  const messages: Message[] = [
    { role: 'user', content: 'My dog is called Rex.' },
    { role: 'assistant', content: 'Noted.' },
    { role: 'user', content: 'What is my dog called?' },
  ]
  assert.match(await ask('', { messages }), '> My dog is called Rex.\n— you, earlier')
})
test('a long message brings its own material; its question may stand at the end', async () => {
  const long =
    `${'The river is wide and slow here. '.repeat(400)}The treasure lies under the oak. ` +
    `${'Birds sing in the morning light. '.repeat(400)}Where does the treasure lie?`
  assert.match(await ask(long), '> The treasure lies under the oak.\n— your message')
})
test('it summarises by the sentences that carry the commonest subjects', async () => {
  const text =
    'Bees make honey. Honey keeps for years. A hive of bees makes twenty kilos of honey. ' +
    'Someone sneezed.'
  const answer = await ask('Summarise this file', { attachments: [{ name: 'bees.txt', text }] })
  assert.match(answer, 'A hive of bees makes twenty kilos of honey.')
})
test("it writes the plan that the system asks for, out of the request's own steps", async () => {
  const messages: Message[] = [
    { role: 'system', content: 'First write a numbered plan.' },
    {
      role: 'user',
      content: 'Read the report, then find the totals and then write to Ann. Check it.',
    },
  ]
  assert.is(
    await ask('', { messages }),
    '1. Read the report\n2. Find the totals\n3. Write to Ann\n4. Check it',
  )
  assert.is(
    await ask('Find the totals. Make a numbered plan.'),
    '1. Look for what the material says about: Find the totals\n2. Answer with the ' +
      'passages found and their sources',
  )
})
test('it calls an offered tool that is named, and no other', async () => {
  const callIn = async (
    message: string,
    tools = [
      tool('add'),
      tool('search', { required: ['q'], properties: { q: { type: 'string' } } }),
    ],
  ) => (await deltasOf(model, message, { tools })).find(delta => delta.type === 'tool_call')?.call
  assert.equal((await callIn('Call `add` with {"a":{"b":"}"}} and {"c":1}'))?.arguments, {
    a: { b: '}' },
  })
  assert.equal((await callIn("Utilise l'outil search pour la météo à Alger"))?.arguments, {
    q: 'la météo à Alger',
  })
  assert.is(await callIn('I like to add numbers'), undefined)
  assert.is(await callIn('use the adder please'), undefined)
  assert.is(await callIn('use the tool drop_tables'), undefined)
  assert.match(await ask('use add {"a":', { tools: [tool('add')] }), 'not valid JSON')
})
test('it reports what a tool answered', async () => {
  const messages: Message[] = [
    { role: 'user', content: 'use add' },
    { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'add', arguments: {} }] },
    { role: 'tool', callId: 'c', content: '42' },
  ]
  assert.is(await ask('', { messages }), 'The tool add answered:\n\n42')
})
test('it comes a few words at a time, with a pause before each', async () => {
  const clock = manualClock()
  const paced = offline({ clock })
  let text = ''
  const reading = (async () => {
    for await (const batch of paced.stream({
      model: 'offline',
      messages: [{ role: 'user', content: 'Hello' }],
      signal: new AbortController().signal,
    }))
      text += textOf(batch)
  })()
  await clock.advance(14)
  assert.is(text, '')
  await clock.advance(16)
  assert.is(text, 'I am the built-in offline model:')
  await clock.advance(10_000)
  await reading
})
test('it reads two mebibytes of anything and lets others have their turn meanwhile', async () => {
  const hostile = [
    'word '.repeat(420_000),
    '. '.repeat(1_100_000),
    ' '.repeat(2_100_000),
    '漢'.repeat(2_100_000),
    '"'.repeat(2_100_000),
    'Contracts end in April, as always. '.repeat(60_000),
  ]
  // Turns are counted instead of milliseconds, which depend on the machine's load. Work in one
  // piece would leave only a few turns for all twelve calls.
  let turns = 0
  let on = true
  const tick = (): void => {
    turns++
    if (on) setImmediate(tick)
  }
  tick()
  for (const text of hostile) {
    await ask('When do words and contracts end? 漢字', { attachments: [{ name: 'big', text }] })
    await ask(text)
  }
  on = false
  assert.ok(turns > 100, `the event loop turned ${turns} times`)
})
test.run()
