// A run whose model calls break off.
import { fault } from '#kernel'
import type { Agent } from '../../../plugins/runs/api.ts'
import { startEngine } from '../engine.ts'
import type { Deltas, Play } from '../scripted-model.ts'

export type Model = NonNullable<Parameters<typeof startEngine>[1]>['model']
export const broken = () => fault('MODEL_FAILED', { why: 'the line was cut' })
/** What the model says in each of its calls. At `'cut'` the connection breaks. */
export const turns = (...list: readonly (readonly (Deltas | 'cut')[])[]): Play =>
  function* (_, asked) {
    for (const batch of list[asked]!) {
      if (batch === 'cut') throw broken()
      yield batch
    }
  }
const careful: Agent = {
  key: 'careful',
  name: 'Careful',
  instruction: 'Answer.',
  onInterrupt: 'restart',
}
/** A server with a tool `look`, whose bodies are counted, and an agent that restarts. */
export async function meet(play: Play, model: Model = {}, env: Record<string, string> = {}) {
  const bodies: string[] = []
  const engine = await startEngine(play, {
    model,
    tools: [
      {
        name: 'look',
        description: 'Looks.',
        parameters: { type: 'object' },
        run: (_, { key }) => {
          bodies.push(key)
          return { content: 'a lighthouse' }
        },
      },
    ],
    agents: [careful],
    credits: 100_000,
    env,
  })
  return { ...engine, bodies }
}
export const plain = { prefill: false, resume: false }
export const mark = (at: number): Deltas => [
  { type: 'checkpoint', checkpoint: { response: 'resp_7', at } },
]
/** The first half of an answer. */
export const half =
  `${'The harbour was dredged and the pier was mended. '.repeat(9)}The lighthouse was built ` +
  'in '
