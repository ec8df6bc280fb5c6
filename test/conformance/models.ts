// What every model provider promises. `long`: a message answered in several batches; `tool`: one
// that makes it call the tool `add` with {"a":1}, if it can.
import assert from 'node:assert/strict'
import type {
  Checkpoint,
  Message,
  ModelDelta,
  ModelProvider,
  ModelRequest,
  ToolSpec,
} from '#ports/models.ts'
import { refuses, rejectsWith, type Test } from './runner.ts'

type Kit = { open: () => Promise<ModelProvider>; long: string; tool?: string }
type Asked = Partial<Omit<ModelRequest, 'messages'>> & { messages?: readonly Message[] }

const addTool: ToolSpec = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
}

/** Every delta of one answer. */
export async function deltasOf(
  provider: ModelProvider,
  content: string,
  asked: Asked = {},
): Promise<ModelDelta[]> {
  const model = (await provider.catalogue()).find(one => one.isDefault)!.key
  const deltas: ModelDelta[] = []
  for await (const batch of provider.stream({
    model,
    messages: [{ role: 'user', content }],
    signal: new AbortController().signal,
    ...asked,
  })) {
    assert.ok(batch.length > 0, 'a batch is never empty')
    deltas.push(...batch)
  }
  return deltas
}
export const textOf = (deltas: readonly ModelDelta[]): string =>
  deltas.map(delta => (delta.type === 'text' ? delta.text : '')).join('')

export function modelsKit(test: Test, name: string, { open, long, tool }: Kit): void {
  const on = (title: string, run: (provider: ModelProvider) => Promise<void>): void =>
    test(`${name}: ${title}`, async () => {
      const provider = await open()
      await run(provider).finally(() => provider.close())
    })
  answers(on, { long, tool })
  ends(on, { long })
  resumes(on, { long })
  test(`${name}: closed, it refuses and ends its calls; opened again, it serves`, async () => {
    const provider = await open()
    await provider.ping()
    const iterator = provider
      .stream({
        model: (await provider.catalogue())[0]!.key,
        messages: [{ role: 'user', content: long }],
        signal: new AbortController().signal,
      })
      [Symbol.asyncIterator]()
    await iterator.next()
    await provider.close()
    await provider.close()
    await iterator.return?.()
    await refuses('UNAVAILABLE', () => provider.ping())
    await refuses('UNAVAILABLE', () => provider.catalogue())
    await refuses('UNAVAILABLE', () =>
      Array.fromAsync(
        provider.stream({ model: 'any', messages: [], signal: new AbortController().signal }),
      ),
    )
    const again = await open()
    assert.notEqual(textOf(await deltasOf(again, long)), '')
    await again.close()
  })
}

type On = (title: string, run: (provider: ModelProvider) => Promise<void>) => void

function answers(on: On, { long, tool }: { long: string; tool: string | undefined }): void {
  on(
    'the catalogue has one default, honest descriptions and whole prices that are not negative',
    async provider => {
      const models = await provider.catalogue()
      assert.equal(models.filter(model => model.isDefault).length, 1)
      assert.equal(new Set(models.map(model => model.key)).size, models.length)
      for (const { description, price, contextTokens, outputTokensMax } of models) {
        assert.ok(description.length > 20 && contextTokens > 0 && outputTokensMax > 0)
        for (const amount of Object.values(price))
          assert.ok(Number.isSafeInteger(amount) && amount >= 0)
      }
    },
  )
  on('an answer ends with its usage, once, and then its finish', async provider => {
    const deltas = await deltasOf(provider, long)
    assert.notEqual(textOf(deltas), '')
    assert.deepEqual(
      deltas.slice(-2).map(delta => delta.type),
      ['usage', 'finish'],
    )
    assert.equal(
      deltas.filter(delta => delta.type === 'usage' || delta.type === 'finish').length,
      2,
    )
    const usage = deltas.at(-2)!
    assert.ok(
      usage.type === 'usage' &&
        Number.isSafeInteger(usage.usage.inputTokens) &&
        usage.usage.inputTokens > 0 &&
        usage.usage.outputTokens > 0,
    )
  })
  on('outputTokensMax cuts the answer and says so', async provider => {
    const deltas = await deltasOf(provider, long, { outputTokensMax: 2 })
    assert.deepEqual(deltas.at(-1), { type: 'finish', reason: 'length' })
    assert.ok(textOf(deltas).length < textOf(await deltasOf(provider, long)).length)
  })
  on('where prefill is offered, an answer goes on exactly where it stopped', async provider => {
    const model = (await provider.catalogue()).find(one => one.isDefault)!
    if (!model.supports.prefill) return
    const whole = textOf(await deltasOf(provider, long))
    const prefill = textOf(await deltasOf(provider, long, { outputTokensMax: 2 }))
    assert.equal(prefill + textOf(await deltasOf(provider, long, { prefill })), whole)
  })
  on('a tool call comes whole, and the answer to it is used', async provider => {
    const model = (await provider.catalogue()).find(one => one.isDefault)!
    assert.equal(tool !== undefined, model.supports.tools)
    if (tool === undefined) return
    const deltas = await deltasOf(provider, tool, { tools: [addTool] })
    const call = deltas.find(delta => delta.type === 'tool_call')
    assert.ok(call?.type === 'tool_call' && call.call.id !== '')
    assert.deepEqual([call.call.name, call.call.arguments], ['add', { a: 1 }])
    // Where the arguments of a call come in parts, it is announced once, before it is whole.
    const opened = deltas.filter(delta => delta.type === 'tool_open')
    assert.deepEqual(
      opened,
      opened.length === 0 ? [] : [{ type: 'tool_open', id: call.call.id, name: 'add' }],
    )
    assert.ok(opened.length === 0 || deltas.indexOf(opened[0]!) < deltas.indexOf(call))
    assert.deepEqual(deltas.at(-1), { type: 'finish', reason: 'tool_calls' })
    const after = await deltasOf(provider, tool, {
      tools: [addTool],
      messages: [
        { role: 'user', content: tool },
        { role: 'assistant', content: '', toolCalls: [call.call] },
        { role: 'tool', callId: call.call.id, content: 'It is 42.' },
      ],
    })
    assert.notEqual(textOf(after), '')
    assert.deepEqual(after.at(-1), { type: 'finish', reason: 'stop' })
  })
}

function ends(on: On, { long }: { long: string }): void {
  on("a model that is not in the catalogue is refused by the field's name", async provider => {
    assert.match(
      await refuses('INVALID_FIELD', () => deltasOf(provider, 'hello', { model: 'no-such-model' })),
      /^model:/,
    )
  })
  on(
    'a call whose signal has aborted throws its reason before it says anything',
    async provider => {
      const reason = new Error('cancelled')
      await rejectsWith(reason, () =>
        deltasOf(provider, long, { signal: AbortSignal.abort(reason) }),
      )
    },
  )
  on("an abort in the middle throws the signal's own reason", async provider => {
    const reason = new Error('cancelled')
    const controller = new AbortController()
    const model = (await provider.catalogue())[0]!.key
    let text = ''
    await rejectsWith(reason, async () => {
      for await (const batch of provider.stream({
        model,
        messages: [{ role: 'user', content: long }],
        signal: controller.signal,
      })) {
        text += textOf(batch)
        if (text !== '') controller.abort(reason)
      }
    })
    assert.ok(text.length > 0 && text.length < textOf(await deltasOf(provider, long)).length)
  })
  on('a reader that leaves in the middle holds nothing back', async provider => {
    const model = (await provider.catalogue())[0]!.key
    for await (const batch of provider.stream({
      model,
      messages: [{ role: 'user', content: long }],
      signal: new AbortController().signal,
    })) {
      assert.ok(batch.length > 0)
      break
    }
  })
}

/** What came up to the last checkpoint, when the reader goes away after so many batches. */
async function readSome(
  provider: ModelProvider,
  request: Omit<ModelRequest, 'signal'>,
  batchesMax: number,
): Promise<{ text: string; checkpoint: Checkpoint | undefined }> {
  let text = ''
  let kept = ''
  let checkpoint: Checkpoint | undefined
  let batches = 0
  for await (const batch of provider.stream({ ...request, signal: new AbortController().signal })) {
    for (const delta of batch) {
      text += textOf([delta])
      if (delta.type === 'checkpoint') [kept, checkpoint] = [text, delta.checkpoint]
    }
    if (++batches === batchesMax) break
  }
  return { text: kept, checkpoint }
}

function resumes(on: On, { long }: { long: string }): void {
  on('checkpoints come only where resume is offered', async provider => {
    const model = (await provider.catalogue()).find(one => one.isDefault)!
    const deltas = await deltasOf(provider, long)
    assert.equal(
      deltas.some(({ type }) => type === 'checkpoint'),
      model.supports.resume,
    )
    assert.deepEqual(
      deltas.slice(-2).map(({ type }) => type),
      ['usage', 'finish'],
    )
  })
  on(
    'where resume is offered, an answer goes on exactly after its checkpoint, wherever it broke',
    async provider => {
      const model = (await provider.catalogue()).find(one => one.isDefault)!
      if (!model.supports.resume) return
      const request = { model: model.key, messages: [{ role: 'user' as const, content: long }] }
      const whole = textOf(await deltasOf(provider, long))
      let further = 0
      for (let batches = 1; batches <= 8; batches++) {
        const { text, checkpoint } = await readSome(provider, request, batches)
        if (checkpoint === undefined) continue
        const rest = await deltasOf(provider, long, { resume: checkpoint })
        assert.equal(text + textOf(rest), whole)
        assert.equal(rest.at(-1)!.type, 'finish')
        if (text !== '') further++
      }
      assert.ok(further > 0, 'at least one checkpoint lies in the middle of the text')
    },
  )
}
