// Traces: what caused what, and how long each part took. Callers pass the parent explicitly, so no
// context is kept per call.
import { port, type Lifecycle } from './token.ts'

/** Names and values of OpenTelemetry's semantic conventions. Never texts of people or models. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>
/** A span that is open. */
export type Span = {
  /**
   * This span as a W3C `traceparent`, for the spans that it causes in this process or another.
   * Undefined when nothing is traced.
   */
  readonly traceparent: string | undefined
  /** Adds attributes to the span. */
  set(attributes: Attributes): void
  /** Marks the span as failed with this code (`error.type`). The span stays open. */
  fail(code: string): void
}
/** `parent`: a `traceparent`. Without a readable one, a new trace begins. */
export type SpanOptions = {
  readonly kind?: 'internal' | 'server' | 'client'
  readonly parent?: string | undefined
  readonly attributes?: Attributes
}

/** Sends spans to a collector. */
export type Tracer = Lifecycle & {
  /**
   * Runs `act` within a span and answers its result. The span ends with `act`. An error of `act`
   * marks the span with its code.
   */
  span<T>(name: string, options: SpanOptions, act: (span: Span) => Promise<T>): Promise<T>
}

/**
 * For plugins that let operators see how long their work takes.
 *  @example plugins/runs/telemetry/spans.ts#createRunSpans
 */
export const Traces = port<Tracer>('traces')
