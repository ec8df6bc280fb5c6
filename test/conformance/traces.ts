// What every tracer promises: work is what it was without it, and each span names its trace.
import assert from 'node:assert/strict'
import { fault } from '#contracts/faults.ts'
import type { Span, Tracer } from '#ports/traces.ts'
import { asking, rejectsWith, type Lacking, type Test, withOpened } from './runner.ts'

/** A span as it arrived. */
export type Received = {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isFailed: boolean
}
/** `traced`: that anything is; `received`: that what arrived can be read back, after closing. */
type Need = 'traced' | 'received'
type Opened = {
  readonly tracer: Tracer
  readonly received?: () => Promise<readonly Received[]>
  readonly clean?: () => unknown
}
type Kit = Lacking<Need> & { readonly open: () => Promise<Opened> }

const caller = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const parent = `00-${caller.traceId}-${caller.spanId}-01`
/** Of a `traceparent` (W3C Trace Context, section 3.2). */
function idsOf({ traceparent }: Span): { readonly traceId: string; readonly spanId: string } {
  const [, traceId, spanId] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-0[0-9a-f]$/.exec(traceparent ?? '') ??
    assert.fail(`no traceparent: ${traceparent}`)
  assert.ok(/[^0]/.test(traceId!) && /[^0]/.test(spanId!), 'an id of zeros is none')
  return { traceId: traceId!, spanId: spanId! }
}

export function tracesKit(test: Test, name: string, { open, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on = (
    title: string,
    needs: readonly Need[],
    run: (opened: Opened) => Promise<void>,
  ): void =>
    ask(
      `${name}: ${title}`,
      needs,
      withOpened(open, ({ tracer }) => tracer, run),
    )
  const idsIn = (tracer: Tracer, given?: string) =>
    tracer.span('part', { parent: given }, async span => idsOf(span))

  on(
    'work within a span is done once, and its answer or what it throws is what comes back',
    [],
    async ({ tracer }) => {
      let times = 0
      for (const answer of ['text', undefined, null, 0, { deep: [] }])
        assert.equal(await tracer.span('work', { parent }, async () => (times++, answer)), answer)
      for (const reason of [
        new Error('no'),
        fault('UNAVAILABLE', { what: 'it', why: 'so' }),
        'a text',
        undefined,
      ])
        await rejectsWith(reason, () =>
          tracer.span('work', {}, async () => {
            times++
            throw reason
          }),
        )
      // Thrown before anything was waited for, too.
      const reason = new Error('at once')
      await rejectsWith(reason, () =>
        tracer.span('work', {}, () => {
          throw reason
        }),
      )
      assert.equal(times, 9)
    },
  )
  on('whatever is said of a span, and when, harms nobody', [], async ({ tracer }) => {
    let kept: Span | undefined
    const answer = await tracer.span(
      'work',
      {
        kind: 'client',
        attributes: { text: 'x', number: 1.5, on: false, list: ['a', 'b'], absent: undefined },
      },
      async span => {
        kept = span
        span.set({ later: 'y', absent: undefined })
        span.fail('UNAVAILABLE')
        span.fail('TIMEOUT')
        return 'done'
      },
    )
    kept!.set({ after: true })
    kept!.fail('LATE')
    assert.equal(answer, 'done')
  })
  on('a parent that cannot be read stops nothing', [], async ({ tracer }) => {
    for (const bad of [
      '',
      'x',
      '00-1-2-01',
      `${parent}${parent}`.toUpperCase(),
      `00-${'0'.repeat(32)}-${caller.spanId}-01`,
      `00-${caller.traceId}-${'0'.repeat(16)}-01`,
      'é🦊\u0000',
    ])
      assert.equal(await tracer.span('work', { parent: bad }, async () => 'done'), 'done')
  })
  on("a span names its trace: its parent's, or one of its own", ['traced'], async ({ tracer }) => {
    const [one, other, alone, again] = [
      await idsIn(tracer, parent),
      await idsIn(tracer, parent),
      await idsIn(tracer),
      await idsIn(tracer, `00-${'0'.repeat(32)}-${caller.spanId}-01`),
    ]
    assert.deepEqual([one.traceId, other.traceId], [caller.traceId, caller.traceId])
    assert.equal(new Set([caller.traceId, alone.traceId, again.traceId]).size, 3)
    assert.equal(new Set([caller, one, other, alone, again].map(({ spanId }) => spanId)).size, 5)
  })
  on(
    'only the parent that is named counts, whatever runs within what',
    ['traced'],
    async ({ tracer }) => {
      await tracer.span('outer', { parent }, async outer => {
        assert.notEqual((await idsIn(tracer)).traceId, caller.traceId)
        assert.equal((await idsIn(tracer, outer.traceparent)).traceId, caller.traceId)
      })
      const many = await Promise.all(
        Array.from({ length: 50 }, () =>
          tracer.span('outer', {}, async outer => {
            await new Promise(resolve => setImmediate(resolve))
            return [idsOf(outer), await idsIn(tracer, outer.traceparent)] as const
          }),
        ),
      )
      for (const [outer, inner] of many) assert.equal(inner.traceId, outer.traceId)
      assert.equal(new Set(many.map(([{ traceId }]) => traceId)).size, 50)
    },
  )
  on(
    'each span arrives with its name, its parent, what was said of it, and the code of its ' +
      'failure; closing waits for them',
    ['traced', 'received'],
    async ({ tracer, received }) => {
      const outer = await tracer.span(
        'outer',
        { kind: 'server', parent, attributes: { first: 'x', count: 2 } },
        async span => {
          span.set({ later: ['y', 'z'] })
          await tracer
            .span('inner', { parent: span.traceparent }, async () => {
              throw fault('UNAVAILABLE', { what: 'it', why: 'so' })
            })
            .catch(() => undefined)
          await tracer.span('told', { parent: span.traceparent }, async inner =>
            inner.fail('TIMEOUT'),
          )
          return idsOf(span)
        },
      )
      await tracer.close()
      const arrived = (await received!())
        .map(({ spanId: _, ...span }) => span)
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      const { traceId } = caller
      assert.deepEqual(arrived, [
        {
          name: 'inner',
          traceId,
          parentId: outer.spanId,
          attributes: { 'error.type': 'UNAVAILABLE' },
          isFailed: true,
        },
        {
          name: 'outer',
          traceId,
          parentId: caller.spanId,
          attributes: { first: 'x', count: 2, later: ['y', 'z'] },
          isFailed: false,
        },
        {
          name: 'told',
          traceId,
          parentId: outer.spanId,
          attributes: { 'error.type': 'TIMEOUT' },
          isFailed: true,
        },
      ])
    },
  )
  on('closed, it still lets work be done; closing twice is allowed', [], async ({ tracer }) => {
    await tracer.ping()
    const late = Promise.withResolvers<void>()
    const working = tracer.span('work', { parent }, async () => (await late.promise, 'done'))
    await Promise.all([tracer.close(), tracer.close()])
    await tracer.close()
    late.resolve()
    assert.deepEqual(
      [await working, await tracer.span('work', {}, async () => 'done')],
      ['done', 'done'],
    )
  })
}
