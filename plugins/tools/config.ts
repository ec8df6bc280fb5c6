import { Type as t, type Static } from 'typebox'

export const ToolsConfig = t.Object({
  calculator_ms: t.Integer({
    default: 1000,
    minimum: 10,
    maximum: 60_000,
    description:
      'How long one expression of the calculator may take, in milliseconds; then its ' +
      'thread is ended.',
  }),
  calculator_threads_max: t.Integer({
    default: 3,
    minimum: 1,
    maximum: 64,
    description:
      'Threads that reckon at a time; one is started when the calculator is first used, ' +
      'more while all are busy. One user has all but one of them at most.',
  }),
  calculator_waiting_max: t.Integer({
    default: 1000,
    minimum: 0,
    maximum: 100_000,
    description:
      'Expressions that wait for a thread; of more, the model is told that the calculator is busy.',
  }),
  calculator_memory_mb: t.Integer({
    default: 32,
    minimum: 16,
    maximum: 1024,
    description: 'Memory that a thread of the calculator may take, in MiB.',
  }),
})
export type ToolsConfig = Static<typeof ToolsConfig>
