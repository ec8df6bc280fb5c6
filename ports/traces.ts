// Traces: what led to what, and how long each part took. Whoever traces names the parent itself, so
// that nothing is kept about who runs where.
import { port, type Lifecycle } from './token.ts'

/**
 * Names and values as OpenTelemetry's semantic conventions have them; never what people or models
 * said.
 */
export type Attributes = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>
/** A part that is under way. */
export type Span = {
  /**
   * Of this span, as a W3C `traceparent`: the parent of what it leads to, in this process or
   * another. Undefined when nothing is traced.
   */
  readonly traceparent: string | undefined
  /** Adds to its attributes. */
  set(attributes: Attributes): void
  /** Its code (`error.type`) alone is told; it ends nothing. */
  fail(code: string): void
}
/** `parent`: a `traceparent`; one that cannot be read, or none, begins a trace. */
export type SpanOptions = {
  readonly kind?: 'internal' | 'server' | 'client'
  readonly parent?: string | undefined
  readonly attributes?: Attributes
}

/** Where spans go. */
export type Tracer = Lifecycle & {
  /**
   * Acts within a span that ends when `act` does, and answers what it answers. What `act` throws
   * marks the span with its code.
   */
  span<T>(name: string, options: SpanOptions, act: (span: Span) => Promise<T>): Promise<T>
}

/**
 * For plugins that let operators see what they spend time on. @example
 * plugins/runs/telemetry/spans.ts#createRunSpans
 */
export const Traces = port<Tracer>('traces')
