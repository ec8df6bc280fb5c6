// A run in plan mode, whose model answers by the phase that it is asked in.
import type { ModelRequest } from '#ports/models.ts'
import { dataOf, startEngine } from '../engine.ts'
import { says, type Deltas } from '../scripted-model.ts'

type Phase = 'plan' | 'work' | 'answer'
export const phaseOf = ({ messages }: ModelRequest): Phase =>
  messages[0]!.content.includes('Write a numbered plan')
    ? 'plan'
    : messages[0]!.content.includes('Carry out one step')
      ? 'work'
      : 'answer'
type Script = Partial<Record<Phase, (request: ModelRequest, times: number) => Deltas[]>>
/** `times`: how often the model was asked in this phase before. `bodies`: those of `look`. */
export async function planner(script: Script, env: Record<string, string> = {}) {
  const asked: Record<Phase, number> = { plan: 0, work: 0, answer: 0 }
  const bodies: string[] = []
  const engine = await startEngine(
    request => {
      const phase = phaseOf(request)
      return (script[phase] ?? (() => says(`the ${phase}`)))(request, asked[phase]++)
    },
    {
      tools: [
        {
          name: 'look',
          description: 'Looks.',
          parameters: { type: 'object' },
          effect: 'none',
          run: () => {
            bodies.push('look')
            return { content: 'a lighthouse' }
          },
        },
      ],
      env,
    },
  )
  return { ...engine, bodies }
}
export const steps = (list: Parameters<typeof dataOf>[0]) =>
  dataOf(list, 'plan_step').map(({ index, status, detail }) => [index, status, detail])
export const plan = { plan: true }
