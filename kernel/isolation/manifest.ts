// The manifest of a plugin in a thread: everything about it that is data. The messages between
// thread and process are declared here too.
import type { Rate } from '#ports/limits.ts'
import type { ResourceLimits } from '../kernel-ports.ts'
import type { Command, Plugin } from '../plugin.ts'

export const resourceLimitsDefault: ResourceLimits = { memory_mb: 128, stall_ms: 10_000 }

/** What is data in a plugin as it stands. */
const asItStands = [
  'name',
  'version',
  'kernel',
  'mount',
  'config',
  'limits',
  'collections',
  'system',
  'may',
  'names',
  'emits',
  'contract',
] as const satisfies readonly (keyof Plugin)[]
export type Manifest = Pick<Plugin, (typeof asItStands)[number] | 'uses'> & {
  readonly jobs: Readonly<Record<string, NonNullable<Plugin['jobs']>[string]['options'] | null>>
  readonly commands: Readonly<
    Record<string, Pick<Command<never>, 'summary' | 'options' | 'needsServer'>>
  >
  readonly contributes: readonly { readonly point: string; readonly remote: boolean }[]
  /** Sentences about parts of the plugin that cannot run in a thread. */
  readonly unfit: readonly string[]
}
/** How a thread starts. `serve` is absent where the thread only describes the plugin. */
export type Start = {
  readonly entry: string
  readonly clock: {
    readonly url: string
    readonly folders: readonly string[]
  }
  /** Milliseconds for the thread's import and start, and for each step of its loading. */
  readonly stepMs: number
  readonly serve?: {
    readonly generation: number
    readonly config: object
    readonly rates: Readonly<Record<string, Rate>>
  }
}
/** A contributed item: its data fields, and the names of its methods. */
export type Item = {
  readonly fields: Readonly<Record<string, unknown>>
  readonly methods: readonly string[]
}
export type Hello =
  | { readonly manifest: Manifest; readonly items: readonly Item[] }
  | { readonly refused: string }

/** Why it cannot live in a thread, a part of a sentence for each reason. */
const unfitnessOf = ({
  provides,
  records,
  contract,
  uses = {},
  commands = {},
  contributes = [],
}: Plugin): string[] => [
  ...Object.keys(provides ?? {}).map(
    one => `it provides the service ${one}, and others call a service without waiting`,
  ),
  ...(records ? ['it keeps records of live work'] : []),
  ...Object.entries(contract ?? {})
    .filter(([, row]) => row.streamed !== undefined)
    .map(([key]) => `${key} reads a streamed body`),
  ...Object.values(uses)
    .filter(({ id, kind }) => kind === 'point' || id === 'port:host' || id === 'port:plugins')
    .map(({ id }) => `it uses ${id}, which answers without waiting`),
  ...Object.entries(commands)
    .filter(([, one]) => 'offline' in one)
    .map(([one]) => `its command "${one}" works on the whole installation`),
  ...contributes
    .filter(({ remote }) => !remote)
    .map(({ point }) => `it contributes to ${point}, whose items are asked without waiting`),
]

export function manifestOf(plugin: Plugin): Manifest {
  const { uses = {}, jobs = {}, commands = {}, contributes = [] } = plugin
  const data = {
    ...Object.fromEntries(asItStands.map(field => [field, plugin[field]])),
    uses,
    unfit: unfitnessOf(plugin),
    jobs: Object.fromEntries(
      Object.entries(jobs).map(([job, { options }]) => [job, options ?? null]),
    ),
    commands: Object.fromEntries(
      Object.entries(commands).flatMap(([command, one]) =>
        'offline' in one
          ? []
          : [
              [
                command,
                { summary: one.summary, options: one.options, needsServer: one.needsServer },
              ],
            ],
      ),
    ),
    contributes: contributes.map(({ point, remote = false }) => ({ point, remote })),
  }
  // Schemas are JSON. A copy drops whatever else a schema library attached to them.
  return JSON.parse(JSON.stringify(data)) as Manifest
}
