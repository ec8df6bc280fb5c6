// Runs as another driver left them, with tools of each effect, and how the next driver continues.
import { fault } from '#kernel'
import type { NewEvent } from '#ports/eventlog.ts'
import type { Tool, ToolAnswer } from '../../../plugins/runs/api.ts'
import { event, modelCallAccepted, toolWhole } from '../../../plugins/runs/journal/records.ts'
import { dataOf, startEngine } from '../engine.ts'
import { resultsIn, says } from '../scripted-model.ts'

const usage = { finish: 'tool_calls', input_tokens: 10, output_tokens: 10 }
export const wanted = (name: string, id = 'c1') =>
  toolWhole({ step: 0, attempt: 1, call: { id, name, arguments: {} } })
export const began = (name: string, id = 'c1') =>
  event('tool_call', { step: 0, call_id: id, name, arguments: {} })
export const accepted = modelCallAccepted({ step: 0, attempt: 1, ...usage })

/** What the tools do. A test may change it at any time. */
type Script = {
  probed: () => ToolAnswer | 'not done' | undefined
  /** How many bodies a storage that is away cuts short. */
  falls: number
  awayCode: 'UNAVAILABLE' | 'STOPPING'
}
export async function startTakeover() {
  const bodies: { name: string; key: string }[] = []
  const script: Script = { probed: () => undefined, falls: 1, awayCode: 'UNAVAILABLE' }
  const away = () =>
    script.awayCode === 'STOPPING'
      ? fault('STOPPING')
      : fault('UNAVAILABLE', { what: 'The database', why: 'it is away' })
  const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
    name,
    description: 'For a test.',
    parameters: { type: 'object' },
    run: (_, { key }) => {
      bodies.push({ name, key })
      return { content: `${name} said so` }
    },
    ...more,
  })
  const stumbling = (name: string, more: Partial<Tool>): Tool =>
    tool(name, {
      ...more,
      run: (_, { key }) => {
        bodies.push({ name, key })
        if (bodies.length <= script.falls) throw away()
        return { content: `${name} said so` }
      },
    })
  const probe = async () => script.probed()
  const engine = await startEngine(request => says(`heard: ${resultsIn(request).join(' | ')}`), {
    tools: [
      tool('pays'),
      tool('asks', { approval: true }),
      tool('knows', { probe }),
      tool('keyed', { effect: 'keyed' }),
      tool('looks', { effect: 'none' }),
      stumbling('trips', {}),
      stumbling('probes', { probe }),
      stumbling('retries', { effect: 'keyed' }),
    ],
    env: { RUNS_TAKES_MAX: '3' },
    model: { supports: { resume: true } },
  })
  /** Returns how the next driver continued the run. */
  const goOn = async (
    records: readonly NewEvent[],
    change: Parameters<typeof engine.left>[1] = {},
  ) => {
    bodies.length = 0
    const before = engine.model.requests.length
    const run = await engine.left(records, change)
    const list = (await engine.read(run.id)).filter(({ id }) => id > records.length)
    await engine.closed(run.id)
    return {
      run,
      list,
      asked: engine.model.requests.slice(before),
      results: dataOf(list, 'tool_result').map(({ status, content }) => [status, content]),
    }
  }
  return { engine, bodies, script, away, goOn }
}
