// The spans of a run in a trace. Names and attributes follow OpenTelemetry's semantic conventions
// for generative AI, version 1.37.0 (docs/gen-ai).
// No span holds what users or models said.
import type { ModelDelta, Usage } from '#ports/models.ts'
import type { Span, Tracer } from '#ports/traces.ts'
import type { Run } from '../collections.ts'

const conversation = ({ id, orgId, sessionId }: Run) => ({
  'gen_ai.conversation.id': sessionId,
  'agent_platform.run.id': id,
  'agent_platform.organisation.id': orgId,
})
type Finish = Extract<ModelDelta, { type: 'finish' }>['reason']
/** Records how a model call went, once it is over. */
export type CallSpan = { ended(usage: Usage, finish: Finish): void }
/** Spans of one driver's work on a run, nested: the work, its model calls, its tools. */
export type RunSpans = ReturnType<ReturnType<typeof createRunSpans>>

export const createRunSpans =
  ({ traces }: { traces: Tracer }) =>
  (run: Run) => {
    let parent = run.trace
    const provider = run.terms.provider ?? 'unknown'
    const within = <T>(
      name: string,
      kind: 'internal' | 'client',
      attributes: Record<string, string | number>,
      act: (span: Span) => Promise<T>,
    ) =>
      traces.span(name, { kind, parent, attributes: { ...attributes, ...conversation(run) } }, act)
    return {
      /** From the lease to the point where the driver leaves the run. Later spans are inside it. */
      driving: <T>(act: () => Promise<T>): Promise<T> =>
        within(
          `invoke_agent ${run.request.app_name}`,
          'internal',
          {
            'gen_ai.operation.name': 'invoke_agent',
            'gen_ai.provider.name': provider,
            'gen_ai.agent.name': run.request.app_name,
            'gen_ai.request.model': run.model,
            'agent_platform.run.epoch': run.epoch,
          },
          span => {
            parent = span.traceparent ?? parent
            return act()
          },
        ),
      /** One try of a model call. */
      call: <T>(step: number, attempt: number, act: (span: CallSpan) => Promise<T>): Promise<T> =>
        within(
          `chat ${run.model}`,
          'client',
          {
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': provider,
            'gen_ai.request.model': run.model,
            'agent_platform.run.step': step,
            'agent_platform.run.attempt': attempt,
          },
          span =>
            act({
              ended: ({ inputTokens, outputTokens }, finish) =>
                span.set({
                  'gen_ai.usage.input_tokens': inputTokens,
                  'gen_ai.usage.output_tokens': outputTokens,
                  'gen_ai.response.finish_reasons': [finish],
                }),
            }),
        ),
      /** The body of one tool call. `isFailure`: of its outcome. */
      tool: <T>(
        name: string,
        callId: string,
        act: () => Promise<T>,
        isFailure: (outcome: T) => boolean,
      ): Promise<T> =>
        within(
          `execute_tool ${name}`,
          'internal',
          {
            'gen_ai.operation.name': 'execute_tool',
            'gen_ai.tool.name': name,
            'gen_ai.tool.call.id': callId,
            'gen_ai.tool.type': 'function',
          },
          async span => {
            const outcome = await act()
            if (isFailure(outcome)) span.fail('tool_error')
            return outcome
          },
        ),
    }
  }
