import { Type as t, type Static } from 'typebox'

const setting = (fallback: number, minimum: number, description: string) => t.Integer({ default: fallback, minimum, description })

export const RunsConfig = t.Object({
  active_max: setting(1000, 1, 'Runs that this process drives at a time; more wait.'),
  queue_max: setting(100, 1, 'Runs that may wait in one session.'),
  lease_ms: setting(15_000, 300, 'How long a silent driver keeps its run before another takes over, in milliseconds.'),
  sweep_ms: setting(2000, 50, 'How often runs that nobody drives are looked for, in milliseconds.'),
  stall_ms: setting(120_000, 100, 'A model that sends nothing for so long is given up, in milliseconds.'),
})
export type RunsConfig = Static<typeof RunsConfig>
