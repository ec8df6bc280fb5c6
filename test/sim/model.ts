// A model in the simulated world: what it says is decided by what it is asked, each piece of it is
// a call of the port.
import { fault } from '#contracts/faults.ts'
import type { Message, Model, ModelDelta, ModelProvider, ModelRequest } from '#ports/models.ts'
import { continueInstruction } from '../../plugins/runs/steps/model-call/resume-plan.ts'
import type { Process, World } from '../support/sim.ts'

export type Reply = {
  readonly text?: string
  readonly calls?: readonly (readonly [name: string, text: string])[]
  /** The provider breaks off after so many pieces. */
  readonly breaksAt?: number
  /** How long the model takes for each piece. */
  readonly pauseMs?: number
  /** Told to go on, it begins again. */
  readonly again?: boolean
  /** Its process dies after so many pieces. */
  readonly kills?: number
  /** A mark behind each piece, for resuming. */
  readonly marks?: boolean
}
/**
 * `results`: what tools have answered since the user spoke; `asked`: how often the model was called
 * in this world.
 */
export type Behaviour = (
  request: { readonly said: string; readonly results: readonly string[]; readonly system: string },
  asked: number,
) => Reply

const pieceChars = 40
export const outputTokensMax = 1000

const lastUser = (messages: readonly Message[]) =>
  messages.findLastIndex(
    message => message.role === 'user' && message.content !== continueInstruction,
  )

function* piecesOf(text: string, from: number): Generator<string> {
  for (let at = from; at < text.length; at += pieceChars) yield text.slice(at, at + pieceChars)
}

/** What one call of the model had in front of it: the user's words, and what was said before. */
export type Heard = { readonly said: string; readonly past: readonly string[] }
type Options = {
  readonly hear: (heard: Heard) => void
  readonly world: World
  readonly process: Process
  readonly behave: Behaviour
  readonly supports?: Partial<Model['supports']> | undefined
}

export function simModel({ hear, world, process, behave, supports = {} }: Options): ModelProvider {
  const model: Model = {
    key: 'sim',
    name: 'Sim',
    description: 'A model in a simulation.',
    provider: 'sim',
    contextTokens: 100_000,
    outputTokensMax,
    isDefault: true,
    price: { inputPer1k: 0, outputPer1k: 1, minimum: 1 },
    supports: { tools: true, reasoning: true, prefill: true, resume: false, ...supports },
  }
  return {
    catalogue: async () => [model],
    async *stream(request: ModelRequest): AsyncGenerator<readonly ModelDelta[]> {
      const { messages, prefill } = request
      const last = lastUser(messages)
      hear({
        said: messages[last]?.content ?? '',
        past: messages
          .slice(0, last)
          .filter(({ role }) => role !== 'system')
          .map(({ content }) => content),
      })
      const results = messages
        .slice(last + 1)
        .flatMap(message => (message.role === 'tool' ? [message.content] : []))
      const asked = asks.next(world)
      const {
        text = '',
        calls = [],
        breaksAt = Infinity,
        pauseMs = 0,
        again = false,
        kills = Infinity,
        marks = false,
      } = behave(
        { said: messages[last]?.content ?? '', results, system: messages[0]!.content },
        asked,
      )
      const kept =
        prefill ??
        (messages.at(-1)?.content === continueInstruction ? messages.at(-2)!.content : '')
      // Asked to go on by an instruction, a model likes to repeat its last words.
      let from = text.startsWith(kept) ? kept.length : 0
      if (prefill === undefined && from > 0) from = again ? 0 : Math.max(0, from - 20)
      if (request.resume) from = request.resume.at
      let pieces = 0
      const say = (...deltas: ModelDelta[]) =>
        world.call(process, 'model.delta', () => {
          request.signal.throwIfAborted()
          if (pieces++ === breaksAt) throw fault('MODEL_FAILED', { why: 'it broke off' })
          return deltas
        })
      let at = from
      for (const piece of piecesOf(text, from)) {
        if (pauseMs > 0) await process.clock.sleep(pauseMs, request.signal)
        if (pieces === kills) world.kill(process)
        yield await say({ type: 'text', text: piece })
        at += piece.length
        if (marks)
          yield await say({ type: 'checkpoint', checkpoint: { response: `r${asked}`, at } })
      }
      for (const [n, [name, argument]] of calls.entries()) {
        yield await say({ type: 'tool_open', id: `c${n}`, name })
        yield await say({
          type: 'tool_call',
          call: { id: `c${n}`, name, arguments: { text: argument } },
        })
      }
      yield await say(
        {
          type: 'usage',
          usage: {
            inputTokens: 10,
            outputTokens: Math.ceil((text.length - from) / 4) + calls.length * 10,
          },
        },
        { type: 'finish', reason: calls.length > 0 ? 'tool_calls' : 'stop' },
      )
    },
    ping: async () => {},
    close: async () => {},
  }
}

/** How often a world's models were asked. */
const asks = {
  counts: new WeakMap<World, number>(),
  next(world: World): number {
    const count = (this.counts.get(world) ?? 0) + 1
    this.counts.set(world, count)
    return count
  },
}
