// Tools whose effects upon the simulated world are counted.
import { Type as t } from 'typebox'
import type { Tool } from '../../plugins/runs/api.ts'
import type { Process, World } from '../support/sim.ts'

/** What the tools did, by the key of the call. */
export type Effects = {
  readonly once: string[]
  readonly keyed: string[]
  none: number
  /** Processes that a tool has ended. */
  deaths: number
}

const parameters = t.Object({ text: t.String() }, { additionalProperties: false })
const textOf = (args: unknown) => (args as { text: string }).text

export function simTools(world: World, process: Process, effects: Effects): readonly Tool[] {
  const acting = (label: string, act: () => void) => world.call(process, label, act)
  return [
    {
      name: 'send',
      description: 'Sends.',
      parameters,
      async run(args, { key }) {
        await acting('tool.send', () => effects.once.push(key))
        return { content: `sent ${textOf(args)}` }
      },
    },
    {
      name: 'pay',
      description: 'Pays.',
      parameters,
      effect: 'keyed',
      async run(args, { key }) {
        await acting('tool.pay', () => effects.keyed.push(key))
        return { content: `paid ${textOf(args)}` }
      },
    },
    {
      name: 'look',
      description: 'Looks.',
      parameters,
      effect: 'none',
      async run(args) {
        await acting('tool.look', () => {
          effects.none++
        })
        return { content: `saw ${textOf(args)}` }
      },
    },
    // Beside others, and it takes its time.
    {
      name: 'post',
      description: 'Posts.',
      parameters,
      parallel: true,
      async run(args, { key, signal }) {
        await process.clock.sleep(300, signal)
        await acting('tool.post', () => effects.once.push(key))
        return { content: `posted ${textOf(args)}` }
      },
    },
    {
      name: 'dump',
      description: 'Tells much.',
      parameters,
      effect: 'none',
      async run(args) {
        await acting('tool.dump', () => {
          effects.none++
        })
        return { content: textOf(args).repeat(1200) }
      },
    },
    {
      name: 'die',
      description: 'Ends its process.',
      parameters,
      effect: 'none',
      async run() {
        effects.deaths++
        world.kill(process)
        await acting('tool.die', () => undefined)
        return { content: 'never' }
      },
    },
    {
      name: 'ask',
      description: 'Asks.',
      parameters,
      effect: 'none',
      run: args => ({
        ask: {
          kind: 'user_choice',
          question: textOf(args),
          options: [
            { id: 'a', label: 'Yes' },
            { id: 'b', label: 'No' },
          ],
          multiple: false,
          free: false,
        },
      }),
    },
  ]
}
