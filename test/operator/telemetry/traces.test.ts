// A whole run as a collector sees it: which span lies in which, and what each says of itself.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startCollector } from '../../support/collector.ts'
import { endServers, readEvents, startServer } from '../../conformance/plugin/server.ts'

const [server, client, internal] = [2, 3, 1]
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpan = '00f067aa0ba902b7'

test('a run with a tool call is one trace, with each span in its place', async () => {
  const collector = await startCollector()
  const platform = await startServer({ env: { TRACES_URL: `otlp:${collector.url}` } })
  const { token, org_id } = await platform.account()
  const message = 'my secret question [[tool=calculator {"expression":"6*7"}]]'
  const { body } = await platform.call('POST', '/chat', {
    token,
    body: { message },
    headers: { traceparent: `00-${traceId}-${callerSpan}-01` },
  })
  const { run_id, session_id } = body as { run_id: string; session_id: string }
  const events = await readEvents(await platform.stream(token, run_id))
  const result = events.find(({ event }) => event === 'tool_result')!
  assert.is(result.data['content'], '42')
  await platform.stop()
  const { spans } = collector
  const named = (name: string) => spans.filter(span => span.name === name)
  const mine = spans.filter(span => span.traceId === traceId)
  collector.close()
  assert.equal([...collector.paths], ['/v1/traces'])

  const [request] = named('POST /api/v1/chat')
  const [driving, ...again] = named('invoke_agent main')
  const calls = named(
    `chat ${events.find(({ event }) => event === 'usage')!.data['model'] as string}`,
  )
  const [tool] = named('execute_tool calculator')
  assert.equal(
    [
      request!.parentSpanId,
      request!.kind,
      request!.attributes['http.route'],
      request!.attributes['http.response.status_code'],
    ],
    [callerSpan, server, '/api/v1/chat', 200],
  )
  assert.equal([driving!.parentSpanId, driving!.kind, again.length], [request!.spanId, internal, 0])
  assert.equal(
    [calls.length, ...calls.map(({ parentSpanId, kind }) => [parentSpanId, kind])],
    [2, [driving!.spanId, client], [driving!.spanId, client]],
  )
  assert.equal([tool!.parentSpanId, tool!.kind], [driving!.spanId, internal])
  assert.is(mine.length, 5, 'nothing else belongs to it')

  const run = {
    'gen_ai.conversation.id': session_id,
    'agent_platform.run.id': run_id,
    'agent_platform.organisation.id': org_id,
  }
  const model = {
    'gen_ai.provider.name': 'scripted',
    'gen_ai.request.model': calls[0]!.name.slice(5),
  }
  assert.equal(driving!.attributes, {
    ...run,
    ...model,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'main',
    'agent_platform.run.epoch': 1,
  })
  const [first, second] = [...calls]
    .sort(
      (a, b) =>
        Number(a.attributes['agent_platform.run.step']) -
        Number(b.attributes['agent_platform.run.step']),
    )
    .map(({ attributes }) => attributes)
  assert.equal(
    [first!['gen_ai.response.finish_reasons'], second!['gen_ai.response.finish_reasons']],
    [['tool_calls'], ['stop']],
  )
  for (const call of [first!, second!]) {
    const {
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      'gen_ai.response.finish_reasons': _,
      'agent_platform.run.step': step,
      ...rest
    } = call
    assert.ok([input, output, step].every(Number.isInteger))
    assert.equal(rest, {
      ...run,
      ...model,
      'gen_ai.operation.name': 'chat',
      'agent_platform.run.attempt': 1,
    })
  }
  assert.equal(tool!.attributes, {
    ...run,
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'calculator',
    'gen_ai.tool.call.id': result.data['call_id'],
    'gen_ai.tool.type': 'function',
  })
  assert.ok(
    collector.bodies.every(text => !/secret question|6\*7|scripted token/.test(text)),
    'what was said is in no span',
  )
})

test('what fails is marked with its code, and only the next try goes well', async () => {
  const collector = await startCollector()
  const platform = await startServer({ env: { TRACES_URL: `otlp:${collector.url}` } })
  const { token } = await platform.account()
  const { body } = await platform.call('POST', '/chat', {
    token,
    body: { message: 'hello [[fail_after=2]]' },
  })
  await readEvents(await platform.stream(token, (body as { run_id: string }).run_id))
  await platform.stop()
  collector.close()
  const calls = collector.spans.filter(({ name }) => name.startsWith('chat '))
  const failed = calls.filter(({ status }) => status.code === 2)
  assert.ok(
    failed.length > 0 &&
      failed.every(({ attributes }) => attributes['error.type'] === 'MODEL_FAILED'),
  )
  assert.equal(new Set(collector.spans.map(({ traceId: id }) => id)).size > 0, true)
})

test('a collector that is away, or refuses, harms neither a run nor the stop', async () => {
  const refusing = await startCollector(500)
  for (const url of ['http://127.0.0.1:9', refusing.url]) {
    const platform = await startServer({ env: { TRACES_URL: `otlp:${url}` } })
    const { token } = await platform.account()
    const { body } = await platform.call('POST', '/chat', { token, body: { message: 'hello' } })
    assert.is(
      (await readEvents(await platform.stream(token, (body as { run_id: string }).run_id))).at(-1)!
        .event,
      'done',
    )
    await platform.stop()
  }
  refusing.close()
})

test('the setting says what is wrong with it', async () => {
  for (const [value, why] of [
    ['otlp:', /OTEL_EXPORTER_OTLP_ENDPOINT/],
    ['otlp:collector', /TRACES_URL/],
    ['otlp:http://c:4318?sample=2', /between 0 and 1/],
    ['zipkin:', /off: otlp:/],
  ] as const) {
    await startServer({ env: { TRACES_URL: value } }).then(
      () => assert.unreachable(value),
      (error: Error) => assert.match(error.message, why),
    )
  }
})

test("without traces a client's are dropped; only the adapter names OpenTelemetry", async () => {
  const platform = await startServer()
  const { token } = await platform.account()
  const before = await platform.call('POST', '/chat', {
    token,
    body: { message: 'hello' },
    headers: { traceparent: `00-${traceId}-${callerSpan}-01` },
  })
  const { run_id } = before.body as { run_id: string }
  const run = await platform
    .engine<{ get(c: object, id: string): Promise<{ trace?: string }> }>('storage')
    .get({ name: 'runs' }, run_id)
  assert.is(run.trace, undefined)
  await readEvents(await platform.stream(token, run_id))
  await platform.stop()
  const home = resolve(import.meta.dirname, '../../..')
  const sources = globSync('{kernel,ports,adapters,plugins,contracts}/**/*.ts', { cwd: home })
  assert.equal(
    sources.filter(file => /from '@opentelemetry/.test(readFileSync(join(home, file), 'utf8'))),
    ['adapters/traces/otlp.ts'],
  )
})

test.after(endServers)
test.run()
