// Brings the tool calls of one answer to their outcomes, in order. Each is journalled before the
// next begins.
import type { Json } from '#kernel'
import type { Tool } from '../../api.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Asked, CallState, Outcome, Step } from '../../journal/state.ts'
import { outcomeOf } from '../../tools/questions.ts'
import type { Allowed, ToolRegistry } from '../../tools/tool-registry.ts'
import { infoOf } from './tool-call-info.ts'
import {
  again,
  effectOf,
  once,
  persist,
  unknownOutcome,
  type ToolExecuting,
} from './tool-execution.ts'
import { createToolRecords, type ToolRecording } from './tool-records.ts'

export type ToolCalling = ToolExecuting &
  ToolRecording & {
    readonly toolRegistry: ToolRegistry
    readonly allowed: Allowed
    /** Resolves when everything journalled so far is on disk. */
    readonly written: () => Promise<void>
  }

/**
 * Brings each call of the step to its outcome, as far as that needs no user. Returns the questions
 * that are open then, in the order of asking.
 */
export async function callTools(
  journal: Journal,
  step: Step,
  calling: ToolCalling,
): Promise<readonly Asked[]> {
  const { run, toolRegistry, allowed } = calling
  const records = createToolRecords(journal, step, calling)
  /** Why the call cannot be made; undefined where it can. */
  const refusal = ({ call, refused }: CallState, tool: Tool | undefined): Outcome | undefined => {
    const why =
      refused ??
      (tool
        ? toolRegistry.misfit(tool, call.arguments)
        : `There is no tool ${JSON.stringify(call.name.slice(0, 80))}.`)
    return why === undefined ? undefined : { status: 'failed', content: why }
  }

  const work = async (one: CallState): Promise<void> => {
    const tool = toolRegistry.find(one.call.name, allowed)
    const answered = one.asked && one.answered ? outcomeOf(one.asked, one.answered) : undefined
    if (answered)
      return one.begun ? records.finish(one, answered) : records.refuse(one, tool, answered)
    const refused = refusal(one, tool)
    if (refused)
      return one.begun ? records.finish(one, unknownOutcome) : records.refuse(one, tool, refused)
    const args = toolRegistry.argumentsOf(tool!, one.call.arguments)
    return act(one, tool!, args)
  }
  const act = async (one: CallState, tool: Tool, args: Json): Promise<void> => {
    if (tool.approval && !one.answered)
      return records.ask(one, 'approval', { action: tool.name, arguments: args })
    const execution = { tool, args, info: infoOf(run, step, one.call.id), callId: one.call.id }
    const settle = async (first: typeof once): Promise<void> =>
      records.settle(one, await persist(execution, calling, first))
    // The body began under another driver.
    if (one.begun) return settle(again)
    await records.begin(one, tool, args)
    // A body may kill its process, so its intent must be on disk before. For a body with effects,
    // the lease is checked once more.
    if (effectOf(tool) !== 'none') await calling.secure()
    else await calling.written()
    return calling.cancellation.whileActing(() => settle(once))
  }

  const isParallel = ({ call }: CallState) => {
    const tool = toolRegistry.find(call.name, allowed)
    return tool !== undefined && (tool.parallel ?? tool.effect === 'none')
  }
  const isWaiting = ({ asked, answered }: CallState) =>
    asked !== undefined && answered === undefined
  for (;;) {
    const open = step.calls.filter(({ outcome }) => outcome === undefined)
    // Parallel calls run together, up to the first that may not. That call waits for all calls
    // before it, and for their questions.
    const until = open.findIndex(one => !isParallel(one))
    const together = until === 0 ? open.slice(0, 1) : open.slice(0, until < 0 ? open.length : until)
    const ready = together.filter(one => !isWaiting(one))
    if (ready.length === 0) return together.map(({ asked }) => asked!)
    await Promise.all(ready.map(work))
    if (calling.cancellation.stopped() !== undefined) throw calling.cancellation.stopped()
  }
}
